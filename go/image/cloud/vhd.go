package cloud

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// vhdFooter is the end of a VHD (Microsoft, "Virtual Hard Disk Image Format
// Specification", version 1.0, section "Hard Disk Footer Format"). Numbers are
// big-endian.
type vhdFooter struct {
	Cookie             [8]byte
	Features           uint32
	FormatVersion      uint32
	DataOffset         uint64 // of the header that follows the footer's copy, where there is one
	Time               uint32 // in seconds since 2000-01-01 00:00 UTC
	CreatorApplication [4]byte
	CreatorVersion     uint32
	CreatorHost        [4]byte
	OriginalSize       uint64 // in bytes, without the footer
	CurrentSize        uint64
	Geometry           vhdGeometry
	DiskType           uint32
	Checksum           uint32
	ID                 [16]byte
	SavedState         uint8
	Reserved           [427]byte
}

// vhdGeometry is a disk's size as cylinders, heads, and sectors a track.
type vhdGeometry struct {
	Cylinders uint16
	Heads     uint8
	Sectors   uint8
}

// Values in the footer of a fixed VHD.
const (
	vhdCookie        = "conectix"
	vhdFeatures      = 2 // a bit that is always set
	vhdFormatVersion = 0x00010000
	vhdNoDataOffset  = 1<<64 - 1
	vhdFixed         = 2
	vhdSectorSize    = 512
)

// What made a VHD: Hyper-V 10.0 on Windows, which is what Azure runs. Programs take
// a disk's size from the geometry, which is mostly less, unless they know that what
// made it goes by the size itself. All of them know that of this name.
const (
	vhdApplication        = "win "
	vhdApplicationVersion = 0x000a0000
	vhdHost               = "Wi2k"
)

// fixedFooter returns the footer of a fixed VHD for a disk of a size in bytes and
// the SHA-256 of its content. Its time is the first that can be stated. Its
// identifier, a UUID, is the digest's beginning.
func fixedFooter(size int64, digest [sha256.Size]byte) ([]byte, error) {
	footer := vhdFooter{
		Cookie:             [8]byte([]byte(vhdCookie)),
		Features:           vhdFeatures,
		FormatVersion:      vhdFormatVersion,
		DataOffset:         vhdNoDataOffset,
		CreatorApplication: [4]byte([]byte(vhdApplication)),
		CreatorVersion:     vhdApplicationVersion,
		CreatorHost:        [4]byte([]byte(vhdHost)),
		OriginalSize:       uint64(size),
		CurrentSize:        uint64(size),
		Geometry:           geometry(size / vhdSectorSize),
		DiskType:           vhdFixed,
		ID:                 [16]byte(digest[:16]),
	}
	// A UUID of version 8 is one of the maker's own kind (RFC 9562).
	footer.ID[6] = footer.ID[6]&0x0f | 8<<4
	footer.ID[8] = footer.ID[8]&0x3f | 0x80
	content, err := binary.Append(nil, binary.BigEndian, footer)
	if err != nil {
		return nil, fmt.Errorf("write the footer: %w", err)
	}
	for _, b := range content {
		footer.Checksum += uint32(b)
	}
	footer.Checksum = ^footer.Checksum
	return binary.Append(content[:0], binary.BigEndian, footer)
}

// geometry returns what the specification has, in its appendix, for a disk of so
// many sectors.
func geometry(sectors int64) vhdGeometry {
	const (
		cylindersLimit = 65535
		headsLimit     = 16
		// What a BIOS can express.
		cylindersBIOS = 1024
	)
	sectors = min(sectors, cylindersLimit*headsLimit*255)
	if sectors >= cylindersLimit*headsLimit*63 {
		return tracks(sectors, headsLimit, 255)
	}
	heads := max(4, (sectors/17+cylindersBIOS-1)/cylindersBIOS)
	switch {
	case heads <= headsLimit && sectors/17 < heads*cylindersBIOS:
		return tracks(sectors, heads, 17)
	case sectors/31 < headsLimit*cylindersBIOS:
		return tracks(sectors, headsLimit, 31)
	default:
		return tracks(sectors, headsLimit, 63)
	}
}

// tracks returns the geometry of a disk with so many heads and sectors a track.
// What makes no whole cylinder is left out.
func tracks(sectors, heads, perTrack int64) vhdGeometry {
	return vhdGeometry{Cylinders: uint16(sectors / perTrack / heads), Heads: uint8(heads), Sectors: uint8(perTrack)}
}
