// Package fuzzseeds checks that every fuzz target starts from something. Its
// seeds are the files in testdata/fuzz/NAME beside it, and calls of f.Add that
// surely happen; a loop over files that may have moved away is neither. A
// folder of seeds that no target reads is a problem too.
package fuzzseeds

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"

	"powercloud.unidatum.com/tools/lint"
)

// Check finds the fuzz targets without seeds and the seeds without a target.
func Check(tree fs.FS) ([]lint.Problem, error) {
	names, err := lint.Files(tree, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if err != nil {
		return nil, err
	}
	var problems []lint.Problem
	corpora := make(map[string]bool)
	targets := 0
	for _, name := range names {
		found, err := fuzzTargets(tree, name)
		if err != nil {
			return nil, err
		}
		for _, target := range found {
			targets++
			corpus := path.Join(path.Dir(name), "testdata/fuzz", target.name)
			corpora[corpus] = true
			problem, err := seeded(tree, name, corpus, target)
			if err != nil {
				return nil, err
			}
			problems = append(problems, problem...)
		}
	}
	if targets == 0 {
		return nil, errors.New("the source tree has no fuzz target: is it the right folder?")
	}
	orphans, err := orphans(tree, corpora)
	if err != nil {
		return nil, err
	}
	return append(problems, orphans...), nil
}

// A fuzzTarget is a function FuzzXxx(f *testing.F).
type fuzzTarget struct {
	name string
	line int
	// adds is whether it calls f.Add however it is run.
	adds bool
}

// fuzzTargets finds the fuzz targets of a test file.
func fuzzTargets(tree fs.FS, name string) ([]fuzzTarget, error) {
	source, err := fs.ReadFile(tree, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // Somebody is at work in the tree.
	}
	if err != nil {
		return nil, fmt.Errorf("read a test: %w", err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("look for fuzz targets: %w", err)
	}
	var targets []fuzzTarget
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Fuzz") {
			continue
		}
		if f, ok := fuzzParameter(function); ok {
			targets = append(targets, fuzzTarget{
				name: function.Name.Name,
				line: files.Position(function.Pos()).Line,
				adds: adds(function.Body.List, f),
			})
		}
	}
	return targets, nil
}

// fuzzParameter returns the name of the function's only parameter if that is a
// *testing.F.
func fuzzParameter(function *ast.FuncDecl) (string, bool) {
	parameters := function.Type.Params.List
	if len(parameters) != 1 || len(parameters[0].Names) != 1 {
		return "", false
	}
	pointer, ok := parameters[0].Type.(*ast.StarExpr)
	if !ok {
		return "", false
	}
	selector, ok := pointer.X.(*ast.SelectorExpr)
	return parameters[0].Names[0].Name, ok && selector.Sel.Name == "F"
}

// adds tells whether one of the statements surely calls f.Add: itself, or as
// the body of a loop over a list that is written there and not empty.
func adds(statements []ast.Stmt, f string) bool {
	for _, statement := range statements {
		switch s := statement.(type) {
		case *ast.ExprStmt:
			if isAdd(s.X, f) {
				return true
			}
		case *ast.RangeStmt:
			list, ok := s.X.(*ast.CompositeLit)
			if ok && len(list.Elts) > 0 && adds(s.Body.List, f) {
				return true
			}
		}
	}
	return false
}

func isAdd(expression ast.Expr, f string) bool {
	call, ok := expression.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Add" {
		return false
	}
	receiver, ok := selector.X.(*ast.Ident)
	return ok && receiver.Name == f
}

// seeded finds what is wrong with a fuzz target's seeds.
func seeded(tree fs.FS, file, corpus string, target fuzzTarget) ([]lint.Problem, error) {
	entries, err := fs.ReadDir(tree, corpus)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the seeds of %s: %w", target.name, err)
	}
	var problems []lint.Problem
	for _, entry := range entries {
		name := path.Join(corpus, entry.Name())
		seed, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read a seed of %s: %w", target.name, err)
		}
		if !bytes.HasPrefix(seed, []byte("go test fuzz v1\n")) {
			problems = append(problems, lint.Problem{
				File: name, Line: 1,
				What: "is not a seed: its first line is not `go test fuzz v1`",
				Mend: "write it as `go help testflag` says, or delete it",
			})
		}
	}
	if len(entries) == 0 && !target.adds {
		problems = append(problems, lint.Problem{
			File: file, Line: target.line,
			What: fmt.Sprintf("%s has no seed that surely exists", target.name),
			Mend: fmt.Sprintf("put seeds into %s, or call f.Add outside of any condition", corpus),
		})
	}
	return problems, nil
}

// orphans finds the folders of seeds that belong to no fuzz target.
func orphans(tree fs.FS, corpora map[string]bool) ([]lint.Problem, error) {
	seeds, err := lint.Files(tree, func(name string) bool { return isCorpus(path.Dir(name)) })
	if err != nil && !errors.Is(err, lint.ErrNoFiles) {
		return nil, err
	}
	var problems []lint.Problem
	for _, seed := range seeds {
		corpus := path.Dir(seed)
		if corpora[corpus] {
			continue
		}
		corpora[corpus] = true // Report it once.
		problems = append(problems, lint.Problem{
			File: corpus,
			What: "holds seeds of a fuzz target that doesn't exist",
			Mend: "rename it after its target, or delete it",
		})
	}
	return problems, nil
}

// isCorpus tells whether a folder holds seeds.
func isCorpus(folder string) bool {
	parent := path.Dir(folder)
	return path.Base(parent) == "fuzz" && path.Base(path.Dir(parent)) == "testdata"
}
