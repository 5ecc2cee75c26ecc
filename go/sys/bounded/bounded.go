// Package bounded reads the beginnings of files whose sizes others choose, as
// firmware and the kernel do of those in /sys.
package bounded

import (
	"errors"
	"io"
	"os"
)

// ReadFile returns a file's content, but no more than a number of bytes. Of a longer
// file it returns the beginning, without an error.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, most))
	return content, errors.Join(err, f.Close())
}
