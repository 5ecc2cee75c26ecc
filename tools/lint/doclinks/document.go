package doclinks

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// A document is what the check wants to know of a Markdown file.
type document struct {
	links   []link
	anchors map[string]bool
}

// A link is a link's or an image's destination as written, and the line that
// it is near: that of the beginning of its paragraph, counted from 1.
type link struct {
	destination string
	line        int
}

// parse reads a Markdown file; every text is valid Markdown.
func parse(source []byte) *document {
	doc := &document{anchors: make(map[string]bool)}
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	line := 1
	// The walker returns no error, so neither does Walk.
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			line = 1 + strings.Count(string(source[:n.Lines().At(0).Start]), "\n")
		}
		switch n := n.(type) {
		case *ast.Heading:
			doc.addHeading(plain(n, source))
		case *ast.Link:
			doc.links = append(doc.links, link{string(n.Destination), line})
		case *ast.Image:
			doc.links = append(doc.links, link{string(n.Destination), line})
		case *ast.HTMLBlock:
			doc.addHTML(string(n.Lines().Value(source)), line)
		case *ast.RawHTML:
			doc.addHTML(string(n.Segments.Value(source)), line)
		}
		return ast.WalkContinue, nil
	})
	return doc
}

// addHeading adds a heading's anchor, made the way the usual hosts of Markdown
// make it: lower case, spaces to dashes, punctuation dropped, and a number for
// the second one of the same name.
func (d *document) addHeading(heading string) {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsNumber(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
	unique := slug
	for i := 1; d.anchors[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", slug, i)
	}
	d.anchors[unique] = true
}

// addHTML adds the anchors and links of a piece of HTML.
func (d *document) addHTML(html string, line int) {
	attribute := regexp.MustCompile(`(?i)\s(id|name|href|src)\s*=\s*["']([^"']*)["']`)
	for _, match := range attribute.FindAllStringSubmatch(html, -1) {
		switch strings.ToLower(match[1]) {
		case "id", "name":
			d.anchors[match[2]] = true
		default:
			d.links = append(d.links, link{match[2], line})
		}
	}
}

// plain is the text of a heading without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			b.Write(child.Segment.Value(source))
		case *ast.String:
			b.Write(child.Value)
		default:
			b.WriteString(plain(child, source))
		}
	}
	return b.String()
}
