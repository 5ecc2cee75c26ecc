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

	"powercloud.unidatum.com/tests/s3server"
)

// secret is the passphrase that every tool gets.
const secret = "a passphrase for benchmarks"

// restic stores into several locations by as many backups.
func restic(path string) tool {
	cache := func(p *place) string { return filepath.Join(p.dir, "cache") }
	env := func(p *place, repo string) []string {
		variables := []string{"RESTIC_PASSWORD=" + secret, "XDG_CACHE_HOME=" + cache(p)}
		if p.service == nil {
			return p.env(append(variables, "RESTIC_REPOSITORY="+repo)...)
		}
		return p.env(append(variables, "RESTIC_REPOSITORY=s3:"+p.service.url+"/"+repo,
			"AWS_ACCESS_KEY_ID="+p.service.server.KeyID, "AWS_SECRET_ACCESS_KEY="+p.service.server.Secret,
			"AWS_DEFAULT_REGION="+s3server.Region)...)
	}
	each := func(p *place, repos []string, args ...string) []command {
		var list []command
		for _, repo := range repos {
			list = append(list, command{path: path, args: args, dir: filepath.Dir(p.source), env: env(p, repo)})
		}
		return list
	}
	all := func(args ...string) operation {
		return func(_ context.Context, p *place) ([]command, error) { return each(p, p.repos, args...), nil }
	}
	return tool{
		note:    "backup --compression off, restore, check --read-data; ls latest, check, prune; several locations: one backup, check and prune each",
		buckets: true,
		setup: func(ctx context.Context, p *place) error {
			return runAll(ctx, each(p, p.repos, "init"))
		},
		put: func(_ context.Context, p *place) ([]command, error) {
			return each(p, p.repos, "backup", "--compression", "off", filepath.Base(p.source)), nil
		},
		get: func(_ context.Context, p *place) ([]command, error) {
			return each(p, p.repos[:1], "restore", "latest", "--target", p.out), nil
		},
		verify: all("check", "--read-data"),
		fill: func(ctx context.Context, p *place, _ workload, _ int) error {
			return runAll(ctx, each(p, p.repos, "backup", "--compression", "off", filepath.Base(p.source)))
		},
		forget: func(p *place) error { return os.RemoveAll(cache(p)) },
		list: func(_ context.Context, p *place) ([]command, error) {
			return each(p, p.repos[:1], "ls", "--long", "latest"), nil
		},
		check: all("check"),
		gc:    all("prune"),
	}
}

// kopia stores into several locations by as many snapshots.
func kopia(path string) tool {
	run := func(p *place, i int, args ...string) command {
		config := filepath.Join(p.dir, fmt.Sprintf("config-%d", i))
		return command{path: path, args: args, dir: p.dir, env: p.env(
			"KOPIA_PASSWORD="+secret, "KOPIA_CHECK_FOR_UPDATES=false", "KOPIA_CONFIG_PATH="+config,
			"KOPIA_CACHE_DIRECTORY="+kopiaCache(p, i),
			"KOPIA_LOG_DIR="+filepath.Join(p.dir, "log"))}
	}
	each := func(p *place, args ...string) []command {
		var list []command
		for i := range p.repos {
			list = append(list, run(p, i, args...))
		}
		return list
	}
	all := func(args ...string) operation {
		return func(_ context.Context, p *place) ([]command, error) { return each(p, args...), nil }
	}
	return tool{
		note:    "snapshot create, restore, snapshot verify of every file (compression is off by default); ls -r -l, snapshot verify, maintenance run --full --safety=none; several locations: one snapshot, verify and maintenance each",
		buckets: true,
		setup: func(ctx context.Context, p *place) error {
			for i, repo := range p.repos {
				create := []string{"repository", "create", "filesystem", "--path", repo}
				if p.service != nil {
					create = []string{"repository", "create", "s3", "--disable-tls", "--endpoint", p.service.host, "--bucket", repo,
						"--region", s3server.Region, "--access-key", p.service.server.KeyID, "--secret-access-key", p.service.server.Secret}
				}
				if err := runAll(ctx, []command{run(p, i, create...)}); err != nil {
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
		verify: all("snapshot", "verify", "--verify-files-percent=100"),
		fill: func(ctx context.Context, p *place, _ workload, _ int) error {
			if err := runAll(ctx, each(p, "snapshot", "create", p.source)); err != nil {
				return err
			}
			var err error
			p.state, err = kopiaSnapshot(ctx, run(p, 0, "snapshot", "list", "--json", p.source))
			return err
		},
		forget: func(p *place) error {
			for i := range p.repos {
				if err := os.RemoveAll(kopiaCache(p, i)); err != nil {
					return err
				}
			}
			return nil
		},
		list: func(_ context.Context, p *place) ([]command, error) {
			return []command{run(p, 0, "ls", "-r", "-l", p.state)}, nil
		},
		check: all("snapshot", "verify"),
		gc:    all("maintenance", "run", "--full", "--safety=none"),
	}
}

func kopiaCache(p *place, i int) string { return filepath.Join(p.dir, fmt.Sprintf("cache-%d", i)) }

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
	check := func(_ context.Context, p *place) ([]command, error) {
		if p.tree {
			return []command{run(p, "cryptcheck", p.source, "crypt:")}, nil
		}
		return []command{run(p, "cryptcheck", filepath.Dir(p.source), "crypt:", "--include", filepath.Base(p.source))}, nil
	}
	return tool{
		note:    "copy, copy back, cryptcheck (which compares with the source and reads one location); lsl, cryptcheck; several locations: a union with create_policy all below crypt; nothing is synced",
		buckets: true,
		setup: func(ctx context.Context, p *place) error {
			obscured, err := output(ctx, run(p, "obscure", secret))
			if err != nil {
				return err
			}
			config, err := rcloneConfig(p, bytes.TrimSpace(obscured))
			if err != nil {
				return err
			}
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
		verify: check,
		fill: func(ctx context.Context, p *place, _ workload, _ int) error {
			return runAll(ctx, []command{run(p, "copy", p.source, "crypt:")})
		},
		list: func(_ context.Context, p *place) ([]command, error) {
			return []command{run(p, "lsl", "crypt:")}, nil
		},
		check: check,
	}
}

// rcloneConfig returns the configuration of a remote crypt over the place's
// directories or buckets.
func rcloneConfig(p *place, password []byte) (string, error) {
	var config strings.Builder
	var upstreams []string
	for _, repo := range p.repos {
		if p.service != nil {
			upstreams = append(upstreams, "service:"+repo)
			continue
		}
		upstreams = append(upstreams, repo)
		if err := os.Mkdir(repo, 0o700); err != nil {
			return "", err
		}
	}
	if p.service != nil {
		// The buckets are there, and were not made by a request: the server fails
		// when it is asked to make one of them again.
		fmt.Fprintf(&config, "[service]\ntype = s3\nprovider = Other\nendpoint = %s\nregion = %s\naccess_key_id = %s\nsecret_access_key = %s\nno_check_bucket = true\n",
			p.service.url, s3server.Region, p.service.server.KeyID, p.service.server.Secret)
	}
	remote := upstreams[0]
	if len(upstreams) > 1 {
		remote = "all:"
		fmt.Fprintf(&config, "[all]\ntype = union\nupstreams = %s\ncreate_policy = all\n", strings.Join(upstreams, " "))
	}
	fmt.Fprintf(&config, "[crypt]\ntype = crypt\nremote = %s\npassword = %s\n", remote, password)
	return config.String(), nil
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
