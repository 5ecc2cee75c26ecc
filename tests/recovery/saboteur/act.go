package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// obey does what a line says, and returns what there is to tell.
func obey(words []string) (string, error) {
	switch {
	case len(words) == 2 && words[0] == "read":
		content, err := os.ReadFile(words[1])
		return strconv.Quote(string(content)), err
	case len(words) == 1 && words[0] == "time":
		return strconv.FormatInt(time.Now().Unix(), 10), nil
	case len(words) == 2 && words[0] == "find" && words[1] == "pcd":
		process, err := find(daemon)
		return strconv.Itoa(process), err
	case len(words) == 3 && words[0] == "signal":
		return "", signal(words[1], words[2])
	case len(words) == 1 && words[0] == "starve":
		return "", starve()
	case len(words) == 1 && words[0] == "count":
		return count()
	}
	return "", errors.New("this can't be told apart from nonsense")
}

// signal sends a signal.
func signal(to, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	process := 1
	if to == "pcd" {
		if process, err = find(daemon); err != nil {
			return err
		}
	}
	return unix.Kill(process, unix.Signal(n))
}

// find returns the process that runs a program.
func find(program string) (int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		// Those of the kernel have no program, and some are over by now.
		if target, err := os.Readlink(link); err == nil && target == program {
			return strconv.Atoi(strings.Split(link, "/")[2])
		}
	}
	return 0, fmt.Errorf("no process runs %s", program)
}

// partition finds the device of the partition that a GPT gives a name.
func partition(name string) (string, error) {
	files, err := filepath.Glob("/sys/class/block/*/uevent")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		opened, err := os.Open(file)
		if err != nil {
			return "", err
		}
		lines := bufio.NewScanner(opened)
		for lines.Scan() {
			if lines.Text() == "PARTNAME="+name {
				_ = opened.Close() // It was only read.
				return filepath.Join("/dev", filepath.Base(filepath.Dir(file))), nil
			}
		}
		if err := errors.Join(lines.Err(), opened.Close()); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("no partition is named %q", name)
}

// count adds one to the number at the beginning of the state partition, sees to it
// that the disk has it, and tells the partition's device and the number.
func count() (string, error) {
	device, err := partition("PowerCloud state")
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	sector := make([]byte, 512)
	_, err = file.ReadAt(sector, 0)
	number := binary.BigEndian.Uint64(sector) + 1
	if err == nil {
		binary.BigEndian.PutUint64(sector, number)
		_, err = file.WriteAt(sector, 0)
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", fmt.Errorf("count on %s: %w", device, err)
	}
	return fmt.Sprintf("%s %d", device, number), nil
}
