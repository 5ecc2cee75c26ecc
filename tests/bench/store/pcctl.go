package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// pcctl is what all this is about. With recovery it unlocks with the recovery
// key, which costs no Argon2id.
func pcctl(path string, recovery bool) tool {
	run := func(p *place, args ...string) command {
		key := "POWERCLOUD_PASSPHRASE=" + secret
		if recovery && p.state != "" {
			key = "POWERCLOUD_RECOVERY_KEY=" + p.state
		}
		return command{path: path, args: append([]string{"--repo", strings.Join(p.repos, ",")}, args...), dir: p.dir,
			env: p.env(key, "POWERCLOUD_CONFIG="+filepath.Join(p.dir, "config"))}
	}
	note := "put, get, check --verify, with the passphrase"
	if recovery {
		note = "the same with the recovery key: what is missing is Argon2id"
	}
	return tool{
		note: note,
		setup: func(ctx context.Context, p *place) error {
			out, err := output(ctx, run(p, "init", "--json"))
			if err != nil {
				return err
			}
			var result struct {
				RecoveryKey string `json:"recovery_key"`
			}
			if err := json.Unmarshal(out, &result); err != nil || result.RecoveryKey == "" {
				return fmt.Errorf("pcctl init --json printed no recovery key: %w", err)
			}
			p.state = result.RecoveryKey
			return nil
		},
		put: func(_ context.Context, p *place) ([]command, error) {
			return []command{run(p, "put", filepath.Base(p.source), p.source)}, nil
		},
		get: func(_ context.Context, p *place) ([]command, error) {
			name := filepath.Base(p.source)
			if p.tree {
				name += "/"
			}
			return []command{run(p, "get", name, below(p.out, p.source))}, nil
		},
		verify: func(_ context.Context, p *place) ([]command, error) {
			return []command{run(p, "check", "--verify")}, nil
		},
	}
}
