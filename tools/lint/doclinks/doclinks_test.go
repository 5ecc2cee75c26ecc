package doclinks

import (
	"testing"

	"powercloud.unidatum.com/tools/lint/linttest"
)

func TestWorkspace(t *testing.T) { linttest.Clean(t, Check) }

func TestGoodLinks(t *testing.T) {
	linttest.Finds(t, Check, linttest.Tree{
		"README.md": "# Top\n\n[a](docs/a.md), [b](docs/a.md#two-words), [c](docs), [d](docs/), [e][ref]\n\n" +
			"[out](https://example.org/x#y) <https://example.org> [mail](mailto:a@example.org) [top](#top)\n\n" +
			"`[code](nowhere.md)`\n\n    [code](nowhere.md)\n\n[ref]: docs/a.md#same-1\n",
		"docs/a.md": "# Two *words*!\n\n## Same\n\n## Same\n\n## `pcctl put` — and_more\n\n<a name=\"here\"></a>\n\n" +
			"[up](../README.md#top) [same](#same-1) [code](#pcctl-put--and_more) [html](#here) ![image](x%20y.png)\n",
		"docs/x y.png": "",
	})
}

func TestBrokenLinks(t *testing.T) {
	linttest.Finds(t, Check, linttest.Tree{
		"README.md": "# Top\n\ntext\n\n[a](docs/b.md)\n\n- one\n- [b](docs/a.md#three) and ![c](c.png)\n\n[d][ref] [e](#bottom)\n\n" +
			"| [f](f.md) |\n| --- |\n\n<a href=\"g.md\">g</a>\n\n[ref]: h.md\n",
		"docs/a.md":  "# Two\n\n[a](/README.md) [b](../../x.md) [c](../README.md#Top) [d](../docs#x) [e](b.txt#x)\n",
		"docs/b.txt": "",
	},
		`README.md:5: the link to "docs/b.md" leads nowhere: there is no docs/b.md; mend it: correct the link by hand`,
		`README.md:8: the link to "docs/a.md#three" leads nowhere: docs/a.md has no heading for #three`,
		`README.md:8: the link to "c.png"`,
		`README.md:10: the link to "h.md"`,
		`README.md:10: the link to "#bottom" leads nowhere: README.md has no heading for #bottom`,
		`README.md:12: the link to "f.md"`,
		`README.md:15: the link to "g.md"`,
		`docs/a.md:3: the link to "/README.md" is absolute`,
		`docs/a.md:3: the link to "../../x.md" leads out of the source tree`,
		`docs/a.md:3: the link to "../README.md#Top" leads nowhere`,
		`docs/a.md:3: the link to "../docs#x" has an anchor, and docs is not a Markdown file`,
		`docs/a.md:3: the link to "b.txt#x" has an anchor`,
	)
	linttest.Refuses(t, Check, linttest.Tree{"a.go": ""}, "no file that this check looks at")
}
