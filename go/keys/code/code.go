// Package code writes short secrets and fingerprints as codes that people read
// aloud, copy by hand and type, and reads them back.
//
// A code is RFC 4648 base32 (A to Z and 2 to 7) without padding, in groups of
// four letters with a dash between them. Reading is forgiving where a slip of
// the hand can't change the meaning: upper and lower case are the same, spaces
// and dashes are ignored, and the digits 0, 1 and 8, which the alphabet lacks,
// are read as the letters they resemble: O, I and B.
//
// A code has no room for a check digit, so a wrong letter inside the alphabet
// is not noticed here: whatever the code opens must authenticate it.
package code

import (
	"encoding/base32"
	"errors"
	"fmt"
	"unicode"
)

const groupLetters = 4

// Format returns the code of b: groups of four letters joined by dashes, the
// last group shorter where the letters don't come out even. The code of no
// bytes is the empty string.
func Format(b []byte) string {
	letters := make([]byte, encoding().EncodedLen(len(b)))
	encoding().Encode(letters, b)
	out := make([]byte, 0, len(letters)+len(letters)/groupLetters)
	for i, c := range letters {
		if i > 0 && i%groupLetters == 0 {
			out = append(out, '-')
		}
		out = append(out, c)
	}
	s := string(out)
	clear(letters)
	clear(out)
	return s
}

// Parse reads the code s of exactly size bytes. Its errors are one line that
// says where s is wrong and never repeat any of it, since a code is often a
// secret.
func Parse(s string, size int) ([]byte, error) {
	if size < 1 {
		return nil, fmt.Errorf("code: a code of %d bytes does not exist", size)
	}
	want := encoding().EncodedLen(size)
	// One letter more than wanted is kept, to tell "too long" from "just
	// right" without storing however much was pasted.
	letters := make([]byte, 0, want+1)
	defer func() { clear(letters[:cap(letters)]) }()
	count := 0
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) {
			continue
		}
		count++
		c, ok := letter(r)
		if !ok {
			return nil, fmt.Errorf("code: character %d, not counting dashes and spaces, is not one of A-Z and 2-7", count)
		}
		if len(letters) <= want {
			letters = append(letters, c)
		}
	}
	if count != want {
		return nil, fmt.Errorf("code: it has %d letters and digits instead of %d", count, want)
	}
	b := make([]byte, size)
	if _, err := encoding().Decode(b, letters); err != nil {
		// Can't happen: every letter was checked. The cause is left out, as it
		// could quote the code.
		clear(b)
		return nil, errors.New("code: it can't be decoded")
	}
	if !canonical(b, letters) {
		clear(b)
		return nil, errors.New("code: its last letter is wrong")
	}
	return b, nil
}

// letter maps what was typed to the alphabet.
func letter(r rune) (byte, bool) {
	switch {
	case r >= 'A' && r <= 'Z', r >= '2' && r <= '7':
		return byte(r), true
	case r >= 'a' && r <= 'z':
		return byte(r - 'a' + 'A'), true
	case r == '0':
		return 'O', true
	case r == '1':
		return 'I', true
	case r == '8':
		return 'B', true
	}
	return 0, false
}

// canonical reports whether letters are what Format would write. Where the bits
// of size bytes don't fill the last letter, the decoder ignores the rest, and
// several codes would stand for the same bytes.
func canonical(b, letters []byte) bool {
	again := make([]byte, len(letters))
	defer clear(again)
	encoding().Encode(again, b)
	return string(again) == string(letters)
}

func encoding() *base32.Encoding {
	return base32.StdEncoding.WithPadding(base32.NoPadding)
}
