package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sync/errgroup"
)

// pieceSize is how much the ceiling seals at once: a chunk of the store.
const pieceSize = 4 << 20

// piece is a part of a file and the name of the blob that it becomes.
type piece struct {
	path   string // of the source, or of the file that get writes
	offset int64
	name   string
}

// buffers are kept, so that memory is not what is measured.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, pieceSize+chacha20poly1305.Overhead)
	return &buf
}

func runCeiling(operation string, args []string) error {
	switch {
	case operation == "put" && len(args) >= 2:
		return ceilingPut(args[0], args[1:])
	case operation == "get" && len(args) == 3:
		return ceilingGet(args[0], args[1], args[2])
	case operation == "verify" && len(args) >= 1:
		for _, dir := range args {
			if err := ceilingVerify(dir); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s %s: wrong number of arguments", selfCommand, operation)
}

// pieces lists the pieces of a source in its order.
func pieces(source string, yield func(piece) error) error {
	number := 0
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		for offset := int64(0); offset < info.Size(); offset += pieceSize {
			name := fmt.Sprintf("%02x/%016x", number%256, number)
			if err := yield(piece{path, offset, name}); err != nil {
				return err
			}
			number++
		}
		return nil
	})
}

// overAll hands pieces to as many goroutines as keep all cores and the disk
// busy.
func overAll(list func(yield func(piece) error) error, do func(p piece, buf []byte) error) error {
	var group errgroup.Group
	var free buffers
	group.SetLimit(2 * cores())
	err := list(func(p piece) error {
		group.Go(func() error {
			buf := free.get()
			defer free.pool.Put(buf)
			return do(p, *buf)
		})
		return nil
	})
	return errors.Join(err, group.Wait())
}

func ceilingPut(source string, dirs []string) error {
	for _, dir := range dirs {
		for i := range 256 {
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("%02x", i)), 0o700); err != nil {
				return err
			}
		}
	}
	key := make([]byte, chacha20poly1305.KeySize)
	err := overAll(func(yield func(piece) error) error { return pieces(source, yield) }, func(p piece, buf []byte) error {
		n, err := readPiece(p, buf[:pieceSize])
		if err != nil {
			return err
		}
		sealed, err := seal(key, buf[:n])
		if err != nil {
			return err
		}
		var group errgroup.Group
		for _, dir := range dirs {
			group.Go(func() error { return replaceFile(filepath.Join(dir, p.name), sealed) })
		}
		return group.Wait()
	})
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		for i := range 256 {
			if err := syncDir(filepath.Join(dir, fmt.Sprintf("%02x", i))); err != nil {
				return err
			}
		}
	}
	return nil
}

func readPiece(p piece, buf []byte) (int, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := f.ReadAt(buf, p.offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// seal does the work of sealing; key and nonce are constant, as nothing here is
// secret.
func seal(key, data []byte) ([]byte, error) {
	mac := hmac.New(sha256.New, key)
	mac.Write(data)
	mac.Sum(nil)
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(data[:0], make([]byte, chacha20poly1305.NonceSizeX), data, nil), nil
}

func unseal(key, sealed []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	data, err := aead.Open(sealed[:0], make([]byte, chacha20poly1305.NonceSizeX), sealed, nil)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(data)
	mac.Sum(nil)
	return data, nil
}

func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(filepath.Dir(path)), "t")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ceilingGet needs the source only for the order of the pieces, which a store
// has in its manifests.
func ceilingGet(out, source, dir string) error {
	key := make([]byte, chacha20poly1305.KeySize)
	err := overAll(func(yield func(piece) error) error { return pieces(source, yield) }, func(p piece, buf []byte) error {
		data, err := readBlob(key, filepath.Join(dir, p.name), buf)
		if err != nil {
			return err
		}
		target := out + strings.TrimPrefix(p.path, source)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(data, p.offset)
		return errors.Join(err, f.Close())
	})
	return err
}

func ceilingVerify(dir string) error {
	key := make([]byte, chacha20poly1305.KeySize)
	return overAll(func(yield func(piece) error) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return yield(piece{path: path})
		})
	}, func(p piece, buf []byte) error {
		_, err := readBlob(key, p.path, buf)
		return err
	})
}

// readBlob reads and opens a blob; what it returns is in buf.
func readBlob(key []byte, path string, buf []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	data, err := unseal(key, buf[:n])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}
