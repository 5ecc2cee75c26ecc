package disk

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
)

// FileTime is what SOURCE_DATE_EPOCH must be: the first time that FAT can state,
// in seconds since 1970.
const FileTime = "315532800"

// VolumeLabel is the EFI system partition's.
const VolumeLabel = "POWERCLOUD"

// writeSystem writes the EFI system partition, with the system at the path.
func writeSystem(storage backend.Storage, name string, system []byte) error {
	if os.Getenv("SOURCE_DATE_EPOCH") != FileTime {
		return errors.New("SOURCE_DATE_EPOCH must be " + FileTime + " in the environment, for files without times of their own")
	}
	if len(system) == 0 {
		return errors.New("the EFI file is empty")
	}
	volume, err := fat32.Create(storage, SystemSize, SystemOffset, SectorSize, VolumeLabel, true)
	if err != nil {
		return fmt.Errorf("make the EFI system partition: %w", err)
	}
	if err := volume.Mkdir(path.Dir(name)); err != nil {
		return fmt.Errorf("make the EFI system partition: %w", err)
	}
	out, err := volume.OpenFile(name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("make the EFI system partition: %w", err)
	}
	_, err = out.Write(system)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write the EFI file of %d bytes: %w", len(system), err)
	}
	return mend(storage)
}
