package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pcctl is what all this is about. As nameRecovery it unlocks with the recovery
// key, which costs no Argon2id.
func pcctl(path, name string) tool {
	key := func(p *place) string {
		if name == nameRecovery && p.state != "" {
			return envRecovery + "=" + p.state
		}
		return "POWERCLOUD_PASSPHRASE=" + secret
	}
	config := func(p *place) string { return filepath.Join(p.dir, "config") }
	run := func(p *place, args ...string) command {
		variables := []string{key(p), "POWERCLOUD_CONFIG=" + config(p)}
		if p.service != nil {
			variables = append(variables, p.service.server.Environment()...)
		}
		return command{path: path, args: append([]string{"--repo", pcctlRepo(p)}, args...), dir: p.dir, env: p.env(variables...)}
	}
	one := func(args ...string) operation {
		return func(_ context.Context, p *place) ([]command, error) { return []command{run(p, args...)}, nil }
	}
	return tool{
		note:    pcctlNote(name),
		buckets: true,
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
		verify: one("check", "--verify"),
		// In a process of its own: what this one takes counts for all its
		// children.
		fill: func(ctx context.Context, p *place, w workload, objects int) error {
			c, err := selfTool(p, "plant", strconv.Itoa(objects), strconv.FormatBool(!w.alone), pcctlRepo(p))
			c.env = append(c.env, envRecovery+"="+p.state)
			if err != nil {
				return err
			}
			_, err = output(ctx, c)
			return err
		},
		forget: func(p *place) error { return os.RemoveAll(config(p)) },
		list:   one("ls"),
		check:  one("check"),
		gc:     one("gc"),
	}
}

func pcctlNote(name string) string {
	switch name {
	case nameRecovery:
		return "the same with the recovery key: what is missing is Argon2id"
	case namePlain:
		return "the same as " + namePCCtl + ", into one directory, beside the erasure-coded set"
	}
	return "put, get, check --verify, with the passphrase; ls, check, gc of objects that were planted"
}

// pcctlRepo returns the place's repositories, as in --repo.
func pcctlRepo(p *place) string {
	if p.erasure {
		return fmt.Sprintf("ec:%d:%s", erasureData, strings.Join(p.repos, ";"))
	}
	if p.service == nil {
		return strings.Join(p.repos, ",")
	}
	var list []string
	for _, bucket := range p.repos {
		list = append(list, fmt.Sprintf("s3://%s?endpoint=%s&creds=test", bucket, p.service.url))
	}
	return strings.Join(list, ",")
}
