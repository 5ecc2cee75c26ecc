package volume

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/dm"
	"powercloud.unidatum.com/go/sys/keyring"
)

const (
	// integrityName and cryptName are the devices' names.
	integrityName = "powercloud-integrity"
	cryptName     = "powercloud-state"

	// blockSize is the size in bytes of what has a tag, whatever the disk's sectors
	// are. A tag for every 512 bytes would take an eighth of the speed and seven times
	// the room.
	blockSize = 4096
	// tagSize is the size of a tag in bytes, that of HMAC-SHA256.
	tagSize = 32
	// runSize is how much lies between two areas of tags, in sectors of 512 bytes. It
	// is what the kernel takes by default.
	runSize = 32768
	// cipher is the kernel's name of what encrypts and authenticates. The number of
	// the sector goes into both, so that none can stand in for another.
	cipher = "capi:authenc(hmac(sha256),xts(aes))-plain64"
)

// stack is the volume's devices, one on the other.
type stack struct{ mapper *dm.Mapper }

// assemble makes the devices of a volume. On a partition whose dm-integrity superblock
// is zeros, the kernel makes a new one with an empty journal.
func assemble(partition string, id volumeid.ID, key *header.Key) (*Volume, error) {
	mapper, err := dm.Open()
	if err != nil {
		return nil, err
	}
	s := stack{mapper}
	// What an earlier process left when it died; a volume that is mounted stays, and
	// is an error.
	if err := s.remove(); err != nil {
		return nil, errors.Join(err, mapper.Close())
	}
	v, err := s.assemble(partition, id, key)
	if err != nil {
		return nil, errors.Join(err, s.remove(), mapper.Close())
	}
	return v, nil
}

func (s stack) assemble(partition string, id volumeid.ID, key *header.Key) (*Volume, error) {
	integrity, sectors, err := s.integrity(partition)
	if err != nil {
		return nil, err
	}
	sectorKey, err := key.SectorKey(id)
	if err != nil {
		return nil, err
	}
	defer clear(sectorKey)
	description := "powercloud:" + id.String()
	if err := s.mapper.Create(cryptName); err != nil {
		return nil, err
	}
	err = keyring.With(description, sectorKey, func() error {
		return s.mapper.Load(cryptName, dm.Target{Length: sectors, Type: "crypt", Parameters: fmt.Sprintf(
			"%s :%d:%s:%s 0 %s 0 2 integrity:%d:aead sector_size:%d",
			cipher, len(sectorKey), keyring.Type, description, integrity, tagSize, blockSize)})
	})
	if err != nil {
		return nil, err
	}
	device, err := s.mapper.Resume(cryptName)
	if err != nil {
		return nil, err
	}
	return &Volume{stack: s, device: device.Path, size: int64(sectors) * dm.SectorSize}, nil
}

// integrity makes the device that keeps the tags, and returns its path and its size in
// sectors of 512 bytes. How much the partition has room for, only the kernel says: so
// it is asked by a device of one block first. There the journal is replayed, and the
// superblock brought up to date where the partition has grown.
func (s stack) integrity(partition string) (path string, sectors uint64, err error) {
	if _, err := s.startIntegrity(partition, blockSize/dm.SectorSize); err != nil {
		return "", 0, err
	}
	status, err := s.mapper.Status(integrityName)
	if err != nil {
		return "", 0, err
	}
	if err := s.mapper.Remove(integrityName); err != nil {
		return "", 0, err
	}
	if sectors, err = provided(status); err != nil {
		return "", 0, err
	}
	device, err := s.startIntegrity(partition, sectors)
	return device.Path, sectors, err
}

// startIntegrity makes the device that keeps the tags, with so many sectors.
func (s stack) startIntegrity(partition string, sectors uint64) (dm.Device, error) {
	if err := s.mapper.Create(integrityName); err != nil {
		return dm.Device{}, err
	}
	err := s.mapper.Load(integrityName, dm.Target{Length: sectors, Type: "integrity", Parameters: fmt.Sprintf(
		"%s %d %d J 2 block_size:%d interleave_sectors:%d",
		partition, header.Area/dm.SectorSize, tagSize, blockSize, runSize)})
	if err != nil {
		return dm.Device{}, err
	}
	return s.mapper.Resume(integrityName)
}

// provided reads the number of sectors from the status of a dm-integrity device: that
// of mismatches, that of sectors, and more.
func provided(status []dm.Target) (uint64, error) {
	if len(status) == 1 {
		if fields := strings.Fields(status[0].Parameters); len(fields) >= 2 {
			sectors, err := strconv.ParseUint(fields[1], 10, 63)
			if err == nil && sectors > 0 && sectors%(blockSize/dm.SectorSize) == 0 {
				return sectors, nil
			}
		}
	}
	return 0, fmt.Errorf("the kernel doesn't say how large the volume is: %+v", status)
}

// remove takes away the devices that there are.
func (s stack) remove() error {
	if err := s.mapper.Remove(cryptName); err != nil {
		return err
	}
	return s.mapper.Remove(integrityName)
}
