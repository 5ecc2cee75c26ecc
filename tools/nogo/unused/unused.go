// Package unused reports staticcheck's U1000, code that nothing uses, in the
// form that nogo takes. staticcheck's own analyzer only collects what is used
// and leaves the report to its command.
package unused

import (
	"go/token"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/unused"
)

// Analyzer reports identifiers that nothing in their package uses, generated
// files aside.
var Analyzer = &analysis.Analyzer{
	Name:     "unused",
	Doc:      "report unused code (staticcheck's U1000)",
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	result := pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result)
	for _, object := range result.Unused {
		pass.Reportf(position(pass, object.Position), "%s %s is unused (U1000)", object.Kind, object.Name)
	}
	return nil, nil
}

// position finds the place that a file name and an offset mean in pass.
// Without one the report stands at the package's first file.
func position(pass *analysis.Pass, at token.Position) token.Pos {
	for _, syntax := range pass.Files {
		file := pass.Fset.File(syntax.FileStart)
		if file.Name() == at.Filename && at.Offset <= file.Size() {
			return file.Pos(at.Offset)
		}
	}
	return pass.Files[0].Package
}
