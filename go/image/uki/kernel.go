package uki

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/klauspost/compress/zstd"
)

// What is known of kernel images, from Documentation/arch/x86/boot.rst and, for
// arm64, drivers/firmware/efi/libstub/zboot-header.S in the kernel's source.
const (
	setupMagicOffset   = 0x202 // "HdrS" in an x86 image
	setupReleaseOffset = 0x20e // where the release is, less 0x200
	setupReleaseBase   = 0x200
	zbootMagicOffset   = 4  // "zimg" in a compressed EFI image
	zbootPayloadOffset = 8  // where its compressed kernel begins
	zbootPayloadSize   = 12 // in bytes
	zbootTypeOffset    = 24 // the name of the compression
	zbootHeader        = 56
	maxKernel          = 256 << 20 // bytes of an unpacked kernel
)

// releasePattern is what uname -r prints.
var releasePattern = regexp.MustCompile(`^[0-9]+\.[0-9]+[0-9A-Za-z.+~_-]*$`)

// bannerPattern finds the release in an unpacked kernel, which has its banner as
// text: "Linux version 6.1.0 (builder@host) …".
var bannerPattern = regexp.MustCompile(`Linux version ([0-9]+\.[0-9]+[0-9A-Za-z.+~_-]*) \(`)

// KernelRelease returns the release of a kernel image, as uname -r prints it: of
// an x86 bzImage from its header, and of an arm64 image, compressed with gzip or
// zstd or not, from its banner. It is for images of the same build, not for
// those that somebody sends.
func KernelRelease(kernel []byte) (string, error) {
	release, err := findRelease(kernel)
	if err != nil {
		return "", fmt.Errorf("find the kernel's release: %w", err)
	}
	if len(release) > maxKernelRelease || !releasePattern.MatchString(release) {
		return "", fmt.Errorf("the kernel's release is said to be %q", release)
	}
	return release, nil
}

func findRelease(kernel []byte) (string, error) {
	if len(kernel) > setupReleaseOffset+2 && string(kernel[setupMagicOffset:setupMagicOffset+4]) == "HdrS" {
		at := int(binary.LittleEndian.Uint16(kernel[setupReleaseOffset:])) + setupReleaseBase
		if at >= len(kernel) {
			return "", errors.New("its header points outside of it")
		}
		// The release is the first word of a text that ends with a zero byte.
		release, _, _ := bytes.Cut(kernel[at:min(at+maxKernelRelease+1, len(kernel))], []byte{0})
		release, _, _ = bytes.Cut(release, []byte{' '})
		return string(release), nil
	}
	if len(kernel) > zbootHeader && string(kernel[zbootMagicOffset:zbootMagicOffset+4]) == "zimg" {
		unpacked, err := unpackKernel(kernel)
		if err != nil {
			return "", err
		}
		kernel = unpacked
	}
	found := bannerPattern.FindSubmatch(kernel)
	if found == nil {
		return "", errors.New("it has neither an x86 header nor a banner")
	}
	return string(found[1]), nil
}

// unpackKernel returns the kernel in a compressed EFI image.
func unpackKernel(kernel []byte) ([]byte, error) {
	offset := uint64(binary.LittleEndian.Uint32(kernel[zbootPayloadOffset:]))
	size := uint64(binary.LittleEndian.Uint32(kernel[zbootPayloadSize:]))
	if offset+size > uint64(len(kernel)) {
		return nil, errors.New("its header points outside of it")
	}
	payload := bytes.NewReader(kernel[offset : offset+size])
	compression, _, _ := bytes.Cut(kernel[zbootTypeOffset:zbootHeader], []byte{0})
	var unpacked io.Reader
	switch string(compression) {
	case "gzip":
		reader, err := gzip.NewReader(payload)
		if err != nil {
			return nil, fmt.Errorf("unpack it: %w", err)
		}
		reader.Multistream(false)
		unpacked = reader
	case "zstd", "zstd22":
		reader, err := zstd.NewReader(payload, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxKernel))
		if err != nil {
			return nil, fmt.Errorf("unpack it: %w", err)
		}
		defer reader.Close()
		unpacked = reader
	default:
		return nil, fmt.Errorf("it is compressed with %q, not gzip or zstd", compression)
	}
	content, err := io.ReadAll(io.LimitReader(unpacked, maxKernel))
	// What follows the last frame, such as the size that the kernel's build
	// appends, is no part of the kernel.
	if len(content) == 0 {
		return nil, fmt.Errorf("unpack it: %w", err)
	}
	return content, nil
}
