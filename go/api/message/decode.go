package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// Decode reads one value and nothing after it. A strict reader also refuses members
// that it doesn't know, and whatever another reader could understand otherwise: a
// member that occurs twice or with letters of another case, null, and text that isn't
// UTF-8. The caller bounds the size of text.
func Decode(text []byte, value any, strict bool) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(value); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the message")
	}
	if strict {
		return unambiguous(text)
	}
	return nil
}

// unambiguous returns an error for what encoding/json lets pass and a strict reader
// doesn't. The text was decoded before, so that it is JSON and not nested too deeply.
func unambiguous(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it isn't UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return checkValue(decoder)
}

// checkValue reads a value and checks it.
func checkValue(decoder *json.Decoder) error {
	token, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return errors.New("it has a null")
	case token == json.Delim('{'):
		return checkObject(decoder)
	case token == json.Delim('['):
		for decoder.More() {
			if err := checkValue(decoder); err != nil {
				return err
			}
		}
		_, err = decoder.Token()
	}
	return err
}

// nameLetters are those that names of members are made of.
const nameLetters = "abcdefghijklmnopqrstuvwxyz0123456789_"

// checkObject reads an object behind its brace, and checks it.
func checkObject(decoder *json.Decoder) error {
	seen := make(map[string]bool)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		switch {
		case !ok || strings.Trim(name, nameLetters) != "":
			return errors.New("it has a member whose name is written with other letters")
		case seen[name]:
			return errors.New("it has a member twice")
		}
		seen[name] = true
		if err := checkValue(decoder); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
