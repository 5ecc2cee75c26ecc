package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// secret is the passphrase that every tool gets.
const secret = "a passphrase for benchmarks"

// restic stores into several locations by as many backups.
func restic(path string) tool {
	env := func(p *place, repo string) []string {
		return p.env("RESTIC_PASSWORD="+secret, "RESTIC_REPOSITORY="+repo, "XDG_CACHE_HOME="+filepath.Join(p.dir, "cache"))
	}
	each := func(p *place, repos []string, args ...string) []command {
		var list []command
		for _, repo := range repos {
			list = append(list, command{path: path, args: args, dir: filepath.Dir(p.source), env: env(p, repo)})
		}
		return list
	}
	return tool{
		note: "backup --compression off, restore, check --read-data; several locations: one backup and one check each",
		setup: func(ctx context.Context, p *place) error {
			return runAll(ctx, each(p, p.repos, "init"))
		},
		put: func(_ context.Context, p *place) ([]command, error) {
			return each(p, p.repos, "backup", "--compression", "off", filepath.Base(p.source)), nil
		},
		get: func(_ context.Context, p *place) ([]command, error) {
			return each(p, p.repos[:1], "restore", "latest", "--target", p.out), nil
		},
		verify: func(_ context.Context, p *place) ([]command, error) {
			return each(p, p.repos, "check", "--read-data"), nil
		},
	}
}

// kopia stores into several locations by as many snapshots.
func kopia(path string) tool {
	run := func(p *place, i int, args ...string) command {
		config := filepath.Join(p.dir, fmt.Sprintf("config-%d", i))
		return command{path: path, args: args, dir: p.dir, env: p.env(
			"KOPIA_PASSWORD="+secret, "KOPIA_CHECK_FOR_UPDATES=false", "KOPIA_CONFIG_PATH="+config,
			"KOPIA_CACHE_DIRECTORY="+filepath.Join(p.dir, fmt.Sprintf("cache-%d", i)),
			"KOPIA_LOG_DIR="+filepath.Join(p.dir, "log"))}
	}
	each := func(p *place, args ...string) []command {
		var list []command
		for i := range p.repos {
			list = append(list, run(p, i, args...))
		}
		return list
	}
	return tool{
		note: "snapshot create, restore, snapshot verify of every file (compression is off by default); several locations: one snapshot and one verify each",
		setup: func(ctx context.Context, p *place) error {
			for i, repo := range p.repos {
				if err := runAll(ctx, []command{run(p, i, "repository", "create", "filesystem", "--path", repo)}); err != nil {
					return err
				}
			}
			return nil
		},
		put: func(_ context.Context, p *place) ([]command, error) {
			return each(p, "snapshot", "create", p.source), nil
		},
		get: func(ctx context.Context, p *place) ([]command, error) {
			id, err := kopiaSnapshot(ctx, run(p, 0, "snapshot", "list", "--json", p.source))
			return []command{run(p, 0, "snapshot", "restore", id, below(p.out, p.source))}, err
		},
		verify: func(_ context.Context, p *place) ([]command, error) {
			return each(p, "snapshot", "verify", "--verify-files-percent=100"), nil
		},
	}
}

// kopiaSnapshot asks for the ID of the only snapshot.
func kopiaSnapshot(ctx context.Context, list command) (string, error) {
	out, err := output(ctx, list)
	if err != nil {
		return "", err
	}
	var snapshots []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(out, &snapshots); err != nil || len(snapshots) != 1 {
		return "", fmt.Errorf("kopia lists %d snapshots: %w", len(snapshots), err)
	}
	return snapshots[0].ID, nil
}

// rclone stores into several locations through a union that creates
// everywhere.
func rclone(path string) tool {
	run := func(p *place, args ...string) command {
		return command{path: path, args: args, dir: p.dir,
			env: p.env("RCLONE_CONFIG=" + filepath.Join(p.dir, "rclone.conf"))}
	}
	return tool{
		note: "copy, copy back, cryptcheck (which compares with the source and reads one location); several locations: a union with create_policy all below crypt; nothing is synced",
		setup: func(ctx context.Context, p *place) error {
			obscured, err := output(ctx, run(p, "obscure", secret))
			if err != nil {
				return err
			}
			remote, union := p.repos[0], ""
			if len(p.repos) > 1 {
				remote = "all:"
				union = fmt.Sprintf("[all]\ntype = union\nupstreams = %s\ncreate_policy = all\n", strings.Join(p.repos, " "))
			}
			for _, repo := range p.repos {
				if err := os.Mkdir(repo, 0o700); err != nil {
					return err
				}
			}
			config := fmt.Sprintf("%s[crypt]\ntype = crypt\nremote = %s\npassword = %s\n", union, remote, bytes.TrimSpace(obscured))
			return os.WriteFile(filepath.Join(p.dir, "rclone.conf"), []byte(config), 0o600)
		},
		put: func(_ context.Context, p *place) ([]command, error) {
			return []command{run(p, "copy", p.source, "crypt:")}, nil
		},
		get: func(_ context.Context, p *place) ([]command, error) {
			if p.tree {
				return []command{run(p, "copy", "crypt:", below(p.out, p.source))}, nil
			}
			return []command{run(p, "copy", "crypt:", p.out)}, nil
		},
		verify: func(_ context.Context, p *place) ([]command, error) {
			if p.tree {
				return []command{run(p, "cryptcheck", p.source, "crypt:")}, nil
			}
			return []command{run(p, "cryptcheck", filepath.Dir(p.source), "crypt:", "--include", filepath.Base(p.source))}, nil
		},
	}
}

// copyTool is cp, once for each location; with sync, followed by a sync of
// what it has written.
func copyTool(sync bool) (tool, error) {
	cp, err := exec.LookPath("cp")
	if err != nil {
		return tool{}, err
	}
	syncPath, err := exec.LookPath("sync")
	if err != nil && sync {
		return tool{}, err
	}
	copyInto := func(p *place, from, to string) ([]command, error) {
		list := []command{{path: cp, args: []string{"-r", from, to}, dir: p.dir, env: p.env()}}
		if sync {
			list = append(list, command{path: syncPath, args: []string{"-f", to}, dir: p.dir, env: p.env()})
		}
		return list, os.MkdirAll(to, 0o700) // get has made it already
	}
	note := "cp -r, once for each location"
	if sync {
		note += ", each followed by sync -f"
	}
	return tool{
		note: note,
		put: func(_ context.Context, p *place) ([]command, error) {
			var list []command
			for _, repo := range p.repos {
				more, err := copyInto(p, p.source, repo)
				if err != nil {
					return nil, err
				}
				list = append(list, more...)
			}
			return list, nil
		},
		get: func(_ context.Context, p *place) ([]command, error) {
			return copyInto(p, below(p.repos[0], p.source), p.out)
		},
	}, nil
}
