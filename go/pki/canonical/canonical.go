// Package canonical reads and writes JSON in which every value has one encoding.
//
// It is what encoding/json writes of a struct: no white space, members in the order
// of the struct's fields, and of strings only what must be escaped. A reader takes
// nothing else, as it writes again what it has read and compares: so an unknown
// member, one that occurs twice or in another order, another spelling of a number,
// and anything behind the value are all refused.
//
// A struct that is read so must be fit for it: every field is written the same way
// as it is read, and omitted only when it is zero.
package canonical

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrForm says that JSON can be read but isn't the one encoding of what it says.
var ErrForm = errors.New("it has an unknown, repeated or misplaced member, or something else in another form than the one that is written")

// Marshal returns the encoding of a value.
func Marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	// Encode ends the line.
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal reads what Marshal writes into a value, which must be the pointer to a
// zero one, and refuses all else. The caller bounds the size of data before. An
// error leaves the value undefined.
func Unmarshal(data []byte, value any) error {
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("it isn't the JSON that it should be: %w", err)
	}
	again, err := Marshal(value)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return ErrForm
	}
	return nil
}

// DecodeHex fills a value with the bytes that text has in lower-case hexadecimal
// digits, and takes nothing else. What is the value's name in the error.
func DecodeHex(value, text []byte, what string) error {
	if len(text) == hex.EncodedLen(len(value)) {
		// Decoding accepts upper case; comparing catches it.
		if _, err := hex.Decode(value, text); err == nil && hex.EncodeToString(value) == string(text) {
			return nil
		}
	}
	return fmt.Errorf("a %s is %d lower-case hexadecimal digits", what, hex.EncodedLen(len(value)))
}
