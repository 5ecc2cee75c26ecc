// Command secureboot makes the key that images are signed with for UEFI Secure
// Boot. tools/sb-keygen runs it.
//
//	secureboot FOLDER
//
// It writes db.key (private), db.crt (the certificate in PEM, for signing) and
// db.cer (the same in DER, for firmware) to the folder, and overwrites nothing.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"powercloud.unidatum.com/go/image/secureboot"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "sb-keygen: %v\n", err)
		os.Exit(1)
	}
}

// run makes a key in the folder that the arguments name.
func run(arguments []string, out io.Writer) error {
	if len(arguments) != 1 || arguments[0] == "" || arguments[0][0] == '-' {
		return errors.New("it takes one folder to write the key to, such as ~/powercloud-sb")
	}
	folder := arguments[0]
	// Bazel runs programs elsewhere than where it was called.
	if called := os.Getenv("BUILD_WORKING_DIRECTORY"); called != "" && !filepath.IsAbs(folder) {
		folder = filepath.Join(called, folder)
	}
	if err := secureboot.Generate(folder, time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `%s: the private key; keep it offline, whoever has it can sign images that your machines boot
%s: the certificate, for signing
%s: the certificate, for firmware
`, filepath.Join(folder, secureboot.KeyFile), filepath.Join(folder, secureboot.CertificateFile), filepath.Join(folder, secureboot.EnrolFile))
	return err
}
