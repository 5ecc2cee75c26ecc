package recovery

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"strconv"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/machine"
)

// The size of a character on the monitor, in pixels. The node's kernel has one font.
const (
	glyphWidth  = 8
	glyphHeight = 16
)

// A glyph is what a character looks like: a byte for each row of pixels.
type glyph [glyphHeight]byte

// TestMonitor looks at the monitor of a node that has one: it shows what pcd says to
// people, the code to enroll it by.
func TestMonitor(t *testing.T) {
	ctx := machine.Patient(t)
	config := sabotaged(t)
	config.Monitor = true
	m := start(ctx, t, config)
	code := m.Expect(ctx, `enrollment code: (\S+)\n`)[0]
	picture, text := screen(ctx, t, m, strings.TrimSpace(code))
	if err := compare(picture, text); err != nil {
		t.Errorf("the monitor doesn't show what the kernel has for it, %q: %v", text, err)
	}
}

// screen waits until the kernel's screen has a text, which it doesn't write there by
// itself, and returns what the monitor shows, and what the screen has, all lines one
// after another.
func screen(ctx context.Context, t *testing.T, m *machine.Machine, want string) (image.Image, string) {
	t.Helper()
	for {
		// The queue of one console may be behind another's, and lines may come in between.
		before := tell(t, m, "read /dev/vcs")
		picture := m.Screenshot(ctx)
		text, err := strconv.Unquote(before)
		if err != nil {
			t.Fatalf("the saboteur answers %s: %v", before, err)
		}
		if strings.Contains(text, want) && tell(t, m, "read /dev/vcs") == before {
			return picture, text
		}
		if ctx.Err() != nil {
			t.Fatalf("the monitor never has %q: %v; last it has %q", want, context.Cause(ctx), text)
		}
	}
}

// compare compares a picture with the text in it. How a character looks isn't known, but
// that it looks the same everywhere, and like no other, leaves no room for another text.
// Spaces don't count: the cursor is on one.
func compare(picture image.Image, text string) error {
	columns, rows := picture.Bounds().Dx()/glyphWidth, picture.Bounds().Dy()/glyphHeight
	if columns*rows != len(text) {
		return fmt.Errorf("a picture of %v has no room for %d characters", picture.Bounds(), len(text))
	}
	glyphs, characters := map[byte]glyph{}, map[glyph]byte{{}: ' '}
	for i := range len(text) {
		if text[i] == ' ' {
			continue
		}
		shape := glyphAt(picture, i%columns, i/columns)
		if is, known := characters[shape]; known && is != text[i] {
			return fmt.Errorf("in line %d, column %d, there is %q, not %q", i/columns, i%columns, is, text[i])
		}
		if looks, known := glyphs[text[i]]; known && looks != shape {
			return fmt.Errorf("in line %d, column %d, there is no %q", i/columns, i%columns, text[i])
		}
		glyphs[text[i]], characters[shape] = shape, text[i]
	}
	return nil
}

// glyphAt is the glyph in this place of a picture.
func glyphAt(picture image.Image, column, row int) glyph {
	var shape glyph
	corner := picture.Bounds().Min.Add(image.Pt(column*glyphWidth, row*glyphHeight))
	for y := range glyphHeight {
		for x := range glyphWidth {
			if red, green, blue, _ := picture.At(corner.X+x, corner.Y+y).RGBA(); red|green|blue != 0 {
				shape[y] |= 1 << x
			}
		}
	}
	return shape
}

// TestCompare draws text in a font of its own.
func TestCompare(t *testing.T) {
	text := "abc abc " + "  code b"
	picture := image.NewGray(image.Rect(0, 0, 8*glyphWidth, 2*glyphHeight))
	for i := range len(text) {
		for bit := range glyphWidth {
			if text[i] != ' ' && text[i]&(1<<bit) != 0 {
				picture.SetGray(i%8*glyphWidth+bit, i/8*glyphHeight+3, color.Gray{Y: 170})
			}
		}
	}
	if err := compare(picture, text); err != nil {
		t.Error(err)
	}
	for _, other := range []string{
		"abc abd   code b", // One character for another.
		"abc abc   codeab", // Something where there is nothing.
		"abc abc   code",   // Of another size.
	} {
		if err := compare(picture, other); err == nil {
			t.Errorf("%q is taken for %q", text, other)
		}
	}
	picture.SetGray(0, 5, color.Gray{Y: 170})
	if err := compare(picture, text); err == nil {
		t.Error("a character that looks like no other passes for two")
	}
}
