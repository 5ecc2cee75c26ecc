// Package prompt gets the cluster's passphrase or recovery key from whoever
// runs pcctl: from the environment, or from the terminal without echo.
package prompt

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
)

// The environment variables that hold secrets.
const (
	EnvPassphrase    = "POWERCLOUD_PASSPHRASE"
	EnvNewPassphrase = "POWERCLOUD_NEW_PASSPHRASE"
	EnvRecoveryKey   = "POWERCLOUD_RECOVERY_KEY"
)

// ErrNoTerminal means that a passphrase is needed, and neither the environment
// has one nor is there a terminal to ask on.
var ErrNoTerminal = errors.New("no terminal for passphrase; set " + EnvPassphrase +
	" (and " + EnvNewPassphrase + " for rotate)")

// ErrInterrupted means that the user gave up at the prompt.
var ErrInterrupted = errors.New("interrupted at the passphrase prompt")

// Terminal asks for a secret.
type Terminal interface {
	// ReadSecret shows the prompt, reads a line without echoing it, and
	// returns it without its end. The caller clears the bytes. It returns
	// ErrNoTerminal when there is no terminal, and the context's error, with
	// the terminal as it was before, when the context ends.
	ReadSecret(ctx context.Context, prompt string) ([]byte, error)
}

// Secrets are the secrets that the environment held. Unset ones are nil.
type Secrets struct {
	Passphrase    []byte
	NewPassphrase []byte
	RecoveryKey   []byte
}

// TakeSecrets reads the secrets once and removes them from the environment, so
// that no child process inherits them.
func TakeSecrets(getenv func(string) string, unsetenv func(string) error) (Secrets, error) {
	var secrets Secrets
	for _, variable := range []struct {
		name  string
		value *[]byte
	}{
		{EnvPassphrase, &secrets.Passphrase},
		{EnvNewPassphrase, &secrets.NewPassphrase},
		{EnvRecoveryKey, &secrets.RecoveryKey},
	} {
		value := getenv(variable.name)
		if value == "" {
			continue
		}
		*variable.value = []byte(value)
		if err := unsetenv(variable.name); err != nil {
			secrets.Wipe()
			return Secrets{}, errors.New("removing " + variable.name + " from the environment failed")
		}
	}
	return secrets, nil
}

// Wipe clears the secrets.
func (s *Secrets) Wipe() {
	clear(s.Passphrase)
	clear(s.NewPassphrase)
	clear(s.RecoveryKey)
	*s = Secrets{}
}

// Passphrase returns the cluster's passphrase, from the environment or the
// terminal. The caller clears it. terminal may be nil.
func Passphrase(ctx context.Context, terminal Terminal, secrets Secrets) ([]byte, error) {
	if secrets.Passphrase != nil {
		return bytes.Clone(secrets.Passphrase), nil
	}
	if terminal == nil {
		return nil, ErrNoTerminal
	}
	return terminal.ReadSecret(ctx, "Passphrase: ")
}

// NewClusterPassphrase returns the passphrase for a new cluster: the one in
// the environment, or else one that is typed twice. check refuses a passphrase
// that can't be used. The caller clears the result. terminal may be nil.
func NewClusterPassphrase(ctx context.Context, terminal Terminal, secrets Secrets, check func([]byte) error) ([]byte, error) {
	return newPassphrase(ctx, terminal, secrets.Passphrase, check)
}

// ChangedPassphrase is NewClusterPassphrase for one that takes the place of
// another.
func ChangedPassphrase(ctx context.Context, terminal Terminal, secrets Secrets, check func([]byte) error) ([]byte, error) {
	return newPassphrase(ctx, terminal, secrets.NewPassphrase, check)
}

// newPassphrase returns a new passphrase: the given one unless it is nil, or else
// one that is typed twice.
func newPassphrase(ctx context.Context, terminal Terminal, given []byte, check func([]byte) error) ([]byte, error) {
	if given != nil {
		if err := check(given); err != nil {
			return nil, err
		}
		return bytes.Clone(given), nil
	}
	if terminal == nil {
		return nil, ErrNoTerminal
	}
	first, err := terminal.ReadSecret(ctx, "New passphrase: ")
	if err != nil {
		return nil, err
	}
	if err := check(first); err != nil {
		clear(first)
		return nil, err
	}
	second, err := terminal.ReadSecret(ctx, "Repeat passphrase: ")
	if err != nil {
		clear(first)
		return nil, err
	}
	defer clear(second)
	if subtle.ConstantTimeCompare(first, second) != 1 {
		clear(first)
		return nil, errors.New("the two passphrases differ; run the command again")
	}
	return first, nil
}
