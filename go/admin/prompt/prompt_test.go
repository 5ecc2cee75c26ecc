package prompt

import (
	"context"
	"errors"
	"testing"
)

// answers is a terminal on which the user types these lines.
type answers []string

func (a *answers) ReadSecret(context.Context, string) ([]byte, error) {
	if len(*a) == 0 {
		return nil, ErrInterrupted
	}
	line := (*a)[0]
	*a = (*a)[1:]
	return []byte(line), nil
}

func anyPassphrase([]byte) error { return nil }

func TestSecretsAreTakenOutOfTheEnvironment(t *testing.T) {
	environment := map[string]string{EnvPassphrase: "p", EnvRecoveryKey: "r", "OTHER": "o"}
	unset := func(name string) error { delete(environment, name); return nil }
	secrets, err := TakeSecrets(func(name string) string { return environment[name] }, unset)
	if err != nil {
		t.Fatal(err)
	}
	if string(secrets.Passphrase) != "p" || string(secrets.RecoveryKey) != "r" || secrets.NewPassphrase != nil {
		t.Errorf("secrets %q", secrets)
	}
	if len(environment) != 1 || environment["OTHER"] != "o" {
		t.Errorf("left in the environment: %v", environment)
	}
	passphrase := secrets.Passphrase
	secrets.Wipe()
	if passphrase[0] != 0 {
		t.Error("Wipe left the passphrase in memory")
	}
}

func TestPassphraseSources(t *testing.T) {
	ctx := t.Context()
	fromEnvironment := Secrets{Passphrase: []byte("from the environment")}

	got, err := Passphrase(ctx, &answers{"typed"}, fromEnvironment)
	if err != nil || string(got) != "from the environment" {
		t.Errorf("%q, %v", got, err)
	}
	clear(got)
	if string(fromEnvironment.Passphrase) != "from the environment" {
		t.Error("clearing the result cleared the secret")
	}
	if got, err := Passphrase(ctx, &answers{"typed"}, Secrets{}); err != nil || string(got) != "typed" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Passphrase(ctx, nil, Secrets{}); !errors.Is(err, ErrNoTerminal) {
		t.Error(err)
	}
	if _, err := NewClusterPassphrase(ctx, nil, Secrets{}, anyPassphrase); !errors.Is(err, ErrNoTerminal) {
		t.Error(err)
	}
	if got, err := NewClusterPassphrase(ctx, nil, fromEnvironment, anyPassphrase); err != nil || string(got) != "from the environment" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWeakPassphraseIsRefusedBeforeItIsRepeated(t *testing.T) {
	weak := errors.New("weak")
	terminal := &answers{"short", "short"}
	_, err := NewClusterPassphrase(t.Context(), terminal, Secrets{}, func([]byte) error { return weak })
	if !errors.Is(err, weak) || len(*terminal) != 1 {
		t.Errorf("error %v with %d lines left", err, len(*terminal))
	}
	_, err = NewClusterPassphrase(t.Context(), nil, Secrets{Passphrase: []byte("short")}, func([]byte) error { return weak })
	if !errors.Is(err, weak) {
		t.Error(err)
	}
}
