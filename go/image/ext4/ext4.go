// Package ext4 makes the file system that state volumes begin with: small, empty, and
// with room to grow to any disk's size.
package ext4

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/tools/debian/program"
)

// Program is what makes the file system, as package program names it: mke2fs of
// Debian's e2fsprogs.
const Program = "e2fsprogs/sbin/mke2fs"

const (
	// Size is the file system's in bytes, unless another is asked for. All of it is
	// written when a node is enrolled, twice because of the journal below it, and
	// somebody waits. Half of it is free.
	Size = 32 << 20
	// BlockSize is that of its blocks in bytes.
	BlockSize = 4096
	// maxSize is up to which size, in bytes, it has room for descriptions of groups
	// in the place where old tools look for them. Beyond, the kernel puts them
	// elsewhere.
	maxSize = 4 << 40
	// journalMiB is the size of its journal, which doesn't grow. mke2fs leaves it no
	// more than half of the room.
	journalMiB = 12
	// inodes is how many there are in this and in every later group of 128 MiB: one
	// for 16 KiB, which is the usual number.
	inodes = 8192
	// groups is how many groups have their tables side by side.
	groups = 16
	// identity is the UUID, and the seed of hashes of names. Format gives every
	// volume others.
	identity = "c79a858a-2459-4d7f-b235-89112a276786"
	// time is when it was made, in seconds since 1970: the time of files in disk
	// images.
	time = "315532800"
	// label is its name.
	label = "powercloud"
)

// features are all that it has, so that no configuration adds any. Every structure
// has a checksum, with a seed that isn't the UUID, so that the UUID can be changed.
var features = []string{
	"none", "has_journal", "ext_attr", "resize_inode", "dir_index", "filetype", "extent", "64bit", "flex_bg",
	"sparse_super", "large_file", "huge_file", "dir_nlink", "extra_isize", "metadata_csum", "metadata_csum_seed",
}

// Write makes the file system, of so many bytes, and writes it, compressed by Zstandard,
// to a new file. The packages' folder is as package program has it. The bytes are the
// same each time.
func Write(ctx context.Context, packages, output string, size int64) (err error) {
	folder, err := os.MkdirTemp("", "ext4-")
	if err != nil {
		return fmt.Errorf("make a file system: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	image := filepath.Join(folder, "image")
	if err := create(ctx, packages, image, size); err != nil {
		return fmt.Errorf("make a file system: %w", err)
	}
	if err := compress(image, output, size); err != nil {
		return fmt.Errorf("compress a file system: %w", err)
	}
	return nil
}

// create makes the file system in a new file.
func create(ctx context.Context, packages, image string, size int64) error {
	command, err := program.Command(ctx, packages, Program, "-q", "-F",
		"-b", fmt.Sprint(BlockSize), "-I", "256", "-N", fmt.Sprint(inodes), "-G", fmt.Sprint(groups), "-m", "0",
		"-J", fmt.Sprintf("size=%d", journalMiB), "-U", identity, "-L", label, "-o", "Linux",
		"-O", strings.Join(features, ","),
		// Nothing is left for the kernel to initialise, so that all can be read.
		"-E", fmt.Sprintf("lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0,hash_seed=%s,resize=%d", identity, int64(maxSize)/BlockSize),
		image, fmt.Sprint(size/BlockSize))
	if err != nil {
		return err
	}
	command.Env = append(command.Env, "MKE2FS_CONFIG=/dev/null", "E2FSPROGS_FAKE_TIME="+time)
	var stderr strings.Builder
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return program.Explain(err, stderr.String())
	}
	return nil
}

// compress compresses a file of a size in bytes. Most of it is zeros.
func compress(input, output string, size int64) (err error) {
	content, err := os.ReadFile(input)
	if err != nil {
		return err
	}
	if int64(len(content)) != size {
		return fmt.Errorf("it has %d bytes, not %d", len(content), size)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, encoder.Close()) }()
	return os.WriteFile(output, encoder.EncodeAll(content, nil), 0o644)
}
