package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// saved is how many bytes at the beginning of a disk are written by save.
const saved = 512

// readStart returns the text at the beginning of a disk.
func readStart(disk string) (string, error) {
	file, err := os.Open(disk)
	if err != nil {
		return "", err
	}
	defer file.Close()
	start := make([]byte, saved)
	if _, err := io.ReadFull(file, start); err != nil {
		return "", fmt.Errorf("read %s: %w", disk, err)
	}
	content, _, _ := strings.Cut(string(start[:32]), "\x00")
	return content, nil
}

// save writes a text to the beginning of every disk.
func save(content string) error {
	if len(content) >= saved {
		return errors.New("the text is too long")
	}
	for _, disk := range glob("/dev/[sv]da") {
		file, err := os.OpenFile(disk, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		start := make([]byte, saved)
		copy(start, content)
		_, err = file.Write(start)
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", disk, err)
		}
		say("saved", disk)
	}
	return nil
}

// setAddress gives a card an address and switches it on.
func setAddress(words []string) error {
	if len(words) != 2 {
		return errors.New("say address CARD A.B.C.D/N")
	}
	prefix, err := netip.ParsePrefix(words[1])
	if err != nil {
		return err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq(words[0])
	if err != nil {
		return err
	}
	mask := net.CIDRMask(prefix.Bits(), 32)
	for _, step := range []struct {
		code    uint
		prepare func() error
	}{
		{unix.SIOCSIFADDR, func() error { return request.SetInet4Addr(prefix.Addr().AsSlice()) }},
		{unix.SIOCSIFNETMASK, func() error { return request.SetInet4Addr(mask) }},
		{unix.SIOCSIFFLAGS, func() error { request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
	} {
		if err := errors.Join(step.prepare(), unix.IoctlIfreq(socket, step.code, request)); err != nil {
			return fmt.Errorf("set the address of %s: %w", words[0], err)
		}
	}
	say("address", words[1])
	return nil
}

// serve answers TCP connections in the background.
func serve(port string) error {
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				say("error", err.Error())
				return
			}
			_, _ = io.WriteString(connection, "hello from port "+port+"\n") // Whoever asked sees it fail.
			_ = connection.Close()
		}
	}()
	say("serves", port)
	return nil
}

// fetch reads a line from whoever serves at an address.
func fetch(address string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		return err
	}
	say("fetched", strings.TrimSpace(line))
	return nil
}

// startWatchdog opens the watchdog and keeps it open without ever feeding it.
func startWatchdog(seconds string) error {
	timeout, err := strconv.Atoi(seconds)
	if err != nil {
		return err
	}
	device, err := unix.Open("/dev/watchdog", unix.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the watchdog: %w", err)
	}
	if err := unix.IoctlSetPointerInt(device, unix.WDIOC_SETTIMEOUT, timeout); err != nil {
		return fmt.Errorf("set the watchdog: %w", err)
	}
	say("watchdog", seconds)
	return nil
}

// watchPowerButton tells when the power button is pressed.
func watchPowerButton() {
	for _, device := range glob("/dev/input/event*") {
		file, err := os.Open(device)
		if err != nil {
			say("error", err.Error())
			continue
		}
		go func() {
			// struct input_event: two 64-bit times, type, code, value.
			for event := make([]byte, 24); ; {
				if _, err := io.ReadFull(file, event); err != nil {
					return
				}
				const key, power = 1, 116
				if binary.NativeEndian.Uint16(event[16:]) == key && binary.NativeEndian.Uint16(event[18:]) == power &&
					binary.NativeEndian.Uint32(event[20:]) == 1 {
					say("power", "button")
				}
			}
		}()
	}
}
