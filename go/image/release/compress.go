package release

import (
	"context"
	"fmt"
	"os"
	"strings"

	"powercloud.unidatum.com/tools/debian/program"
)

// blockSize is how many bytes of content go into each block of a compressed file.
// It is also about what unpacking takes of memory.
const blockSize = "16MiB"

// Compress writes what is in a file in the .xz format, with CRC-64, to a new one.
// The program is xz of Debian's xz-utils, in a folder of unpacked packages as
// package program has it. The bytes follow from the content alone: blocks are of
// one size, and how many threads make them doesn't show. A Go module does the
// same, at a twentieth of the speed where there is nothing to compress.
func Compress(ctx context.Context, packages, input, output string) (err error) {
	in, err := os.Open(input)
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	defer in.Close()
	out, err := os.Create(output)
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	defer func() {
		if closing := out.Close(); err == nil && closing != nil {
			err = fmt.Errorf("compress: %w", closing)
		}
	}()
	// The plus sign has one thread make blocks as well.
	command, err := program.Command(ctx, packages, "xz-utils/usr/bin/xz",
		"--format=xz", "--check=crc64", "-6", "--threads=+2", "--no-adjust", "--block-size="+blockSize, "--stdout")
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	var stderr strings.Builder
	command.Stdin, command.Stdout, command.Stderr = in, out, &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("compress %s: %w", input, program.Explain(err, stderr.String()))
	}
	return nil
}
