// Package doclinks checks that the links of the documentation lead somewhere:
// every relative link in a Markdown file to a file or folder of the tree, and
// every anchor to a heading or a named place of the file that it points into.
// Links that leave the tree are not followed.
package doclinks

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"powercloud.unidatum.com/tools/lint"
)

const mend = "correct the link by hand"

// Check finds the links that lead nowhere.
func Check(tree fs.FS) ([]lint.Problem, error) {
	names, err := lint.Files(tree, lint.Extension(".md"))
	if err != nil {
		return nil, err
	}
	c := checker{tree: tree, documents: make(map[string]*document)}
	var problems []lint.Problem
	for _, name := range names {
		doc, err := c.document(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // Somebody is at work in the tree.
		}
		if err != nil {
			return nil, err
		}
		for _, l := range doc.links {
			what, err := c.broken(name, l.destination)
			if err != nil {
				return nil, err
			}
			if what != "" {
				what = fmt.Sprintf("the link to %q %s", l.destination, what)
				problems = append(problems, lint.Problem{File: name, Line: l.line, What: what, Mend: mend})
			}
		}
	}
	return problems, nil
}

type checker struct {
	tree      fs.FS
	documents map[string]*document
}

// document reads and parses a Markdown file, once.
func (c *checker) document(name string) (*document, error) {
	if doc, ok := c.documents[name]; ok {
		return doc, nil
	}
	content, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return nil, fmt.Errorf("read a document: %w", err)
	}
	doc := parse(content)
	c.documents[name] = doc
	return doc, nil
}

// broken says what is wrong with a link in the file of this name, or nothing.
func (c *checker) broken(from, destination string) (string, error) {
	link, err := url.Parse(destination)
	if err != nil {
		return "is not a URL", nil
	}
	if link.Scheme != "" || link.Host != "" {
		return "", nil
	}
	if strings.HasPrefix(link.Path, "/") {
		return "is absolute; make it relative to the file", nil
	}
	target := from
	if link.Path != "" {
		target = path.Join(path.Dir(from), link.Path)
	}
	if !fs.ValidPath(target) {
		return "leads out of the source tree", nil
	}
	info, err := fs.Stat(c.tree, target)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("leads nowhere: there is no %s", target), nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the target of a link in %s: %w", from, err)
	}
	if link.Fragment == "" {
		return "", nil
	}
	if info.IsDir() || path.Ext(target) != ".md" {
		return fmt.Sprintf("has an anchor, and %s is not a Markdown file", target), nil
	}
	doc, err := c.document(target)
	if err != nil {
		return "", err
	}
	if !doc.anchors[link.Fragment] {
		return fmt.Sprintf("leads nowhere: %s has no heading for #%s", target, link.Fragment), nil
	}
	return "", nil
}
