package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/files"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/store"
)

func (g *group) getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "Fetch objects",
		ArgsUsage: "NAME [FILE] | NAME... DIR/ | PREFIX/ DIR",
		UsageText: `pcctl --repo LOC,... get NAME [FILE]
pcctl --repo LOC,... get [--json] NAME... DIR/
pcctl --repo LOC,... get [--json] PREFIX/ DIR`,
		Description: `Reads and decrypts objects. Every chunk is authenticated before any of it is
written.

  get NAME [FILE]   fetches NAME into FILE, or to standard output without FILE
                    or with "-"
  get NAME... DIR/  fetches each NAME as DIR/NAME's last element
  get PREFIX/ DIR   fetches PREFIX/x/y as DIR/x/y; "/" is every object

Files get mode 0600, directories that are missing 0700, and files the
modification time of the file that was stored. A file appears, or is replaced,
only once it is complete. No name leads out of DIR; one that can't be a file
there is left out and makes get fail in the end.

With --json, a line for each object:
{"name": NAME, "bytes": N, "chunks": N, "modified": TIME, "file": FILE}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: action(1, -1, g.get),
	}
}

func (g *group) get(ctx context.Context, cmd *cli.Command, args []string) error {
	run, err := planDownload(args)
	if err != nil {
		return err
	}
	if run.toStream() && cmd.Bool("json") {
		return command.Usagef("get: --json needs a FILE or DIR, as the object itself goes to standard output")
	}
	if err := run.checkTarget(); err != nil {
		return err
	}
	bar := g.Bar("fetching", progress.Bytes)
	defer bar.Close()
	s, err := g.Objects(ctx, cmd, bar)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, s.Repository)
	d := &downloads{group: g, store: s.Store, bar: bar, json: cmd.Bool("json")}
	d.failures = &failures{group: g, bar: bar}
	switch {
	case run.toStream():
		if g.Env.StdoutTerminal {
			// The bar would be drawn into the content.
			bar.Close()
		}
		_, err = s.Get(ctx, run.names[0], files.Writer(ctx, g.Env.Stdout), bar)
	case run.dir == "":
		err = d.single(ctx, run.names[0], run.file)
	default:
		err = d.many(ctx, run)
	}
	if err != nil {
		return err
	}
	g.WarnCorrupt(s, bar)
	return nil
}

// download is what the arguments of get ask for.
type download struct {
	// names are the objects, unless all below prefix are meant.
	names     []string
	prefix    string
	allPrefix bool
	// file is the target of a single object; dir that of others. With
	// neither it is standard output.
	file, dir string
}

func (d download) toStream() bool { return d.file == "" && d.dir == "" }

// planDownload makes sense of the arguments.
func planDownload(args []string) (download, error) {
	first, last := args[0], args[len(args)-1]
	switch {
	case strings.HasSuffix(first, "/"):
		if len(args) != 2 {
			return download{}, command.Usagef("get: %q is a prefix: name one directory to fetch it into; see 'pcctl help get'", first)
		}
		prefix := first
		if prefix == "/" {
			prefix = ""
		}
		return download{prefix: prefix, allPrefix: true, dir: last}, nil
	case len(args) == 1:
		return download{names: args}, nil
	case len(args) == 2 && (last == standardStream || last == "/dev/stdout"):
		return download{names: args[:1]}, nil
	case isDirPath(last):
		names := args[:len(args)-1]
		from := map[string]string{}
		for _, name := range names {
			if strings.HasSuffix(name, "/") {
				return download{}, command.Usagef("get: fetch the prefix %q by itself", name)
			}
			if earlier, taken := from[path.Base(name)]; taken {
				return download{}, command.Usagef("get: %s and %s would both become %s", earlier, name, path.Base(name))
			}
			from[path.Base(name)] = name
		}
		return download{names: names, dir: last}, nil
	case len(args) == 2:
		return download{names: args[:1], file: last}, nil
	}
	return download{}, command.Usagef("get: several objects need a directory at the end, written %q", last+"/")
}

// isDirPath tells whether a path is written as that of a directory.
func isDirPath(p string) bool {
	return p != "" && os.IsPathSeparator(p[len(p)-1])
}

// checkTarget refuses a target that can't work, before the passphrase is asked
// for.
func (d download) checkTarget() error {
	if d.file == "" {
		return nil
	}
	kind, _, err := files.Classify(d.file)
	if err == nil && kind == files.Directory {
		err = fmt.Errorf("%s is a directory; to fetch into it, write %s", d.file, d.file+"/")
	}
	return err
}

// downloads is a get at work on files.
type downloads struct {
	group    *group
	store    *store.Store
	bar      *progress.Bar
	json     bool
	failures *failures
	// listing has the objects of a prefix, once it was listed.
	listing *store.Listing
}

// single fetches one object into a file.
func (d *downloads) single(ctx context.Context, name, file string) error {
	kind, resolved, err := files.Classify(file)
	if err != nil {
		return err
	}
	if kind == files.Special {
		return d.intoSpecial(ctx, name, file)
	}
	root, err := os.OpenRoot(filepath.Dir(resolved))
	if err != nil {
		return err
	}
	defer root.Close()
	return d.fetch(ctx, root, target{name: name, path: filepath.Base(resolved), index: notListed}, file, d.bar)
}

// intoSpecial writes an object to what isn't a regular file, such as a named pipe,
// and must not be replaced by one.
func (d *downloads) intoSpecial(ctx context.Context, name, file string) error {
	target, err := files.Open(ctx, file, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	o, err := d.store.Get(ctx, name, files.Writer(ctx, target), d.bar)
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return d.print(o, file)
}

// fetch replaces the file at a target's path below root by the object's content.
// shown is the path as the user would write it.
func (d *downloads) fetch(ctx context.Context, root *os.Root, t target, shown string, meter store.Progress) error {
	file, err := files.Replace(root, t.path)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	o, err := d.get(ctx, t, file.File, meter)
	if err != nil {
		return errors.Join(err, file.Abort())
	}
	if err := file.Commit(o.FileTime); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return d.print(o, shown)
}

// get writes an object's content to w.
func (d *downloads) get(ctx context.Context, t target, w io.Writer, meter store.Progress) (store.Object, error) {
	if t.index == notListed {
		return d.store.Get(ctx, t.name, w, meter)
	}
	return d.store.GetListed(ctx, d.listing, t.index, w, meter)
}

// print reports an object that was fetched into a file, with --json.
func (d *downloads) print(o store.Object, file string) error {
	if !d.json {
		return nil
	}
	result := newObjectResult(o)
	result.File = file
	var err error
	d.bar.Print(func() { err = command.WriteJSON(d.group.Env.Stdout, result) })
	return err
}

// target is an object and the path below the directory that it is fetched to.
type target struct {
	name, path string
	// index is the object's in the listing, or notListed.
	index int
}

// notListed is the index of an object that was named on the command line.
const notListed = -1

// largeAtOnce is how many objects that may be large are fetched at once: each takes
// memory.
const largeAtOnce = 8

// many fetches several objects into a directory.
func (d *downloads) many(ctx context.Context, run download) error {
	targets, meter, err := d.targets(ctx, run)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(run.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(run.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	total := len(targets) + d.failures.count
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(d.store.ObjectsAtOnce())
	large := make(chan struct{}, largeAtOnce)
	for _, t := range targets {
		group.Go(func() error {
			if !d.small(t) {
				large <- struct{}{}
				defer func() { <-large }()
			}
			err := d.fetchBelow(ctx, root, run.dir, t, meter)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var output *command.OutputError
			if errors.As(err, &output) {
				return err
			}
			if err != nil {
				d.failures.add(err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if d.failures.count > 0 {
		d.bar.Close()
		return fmt.Errorf("%d of %d objects could not be fetched", d.failures.count, total)
	}
	return nil
}

// small reports whether an object is known to be small.
func (d *downloads) small(t target) bool {
	return t.index != notListed && d.listing.At(t.index).Size <= store.SmallObject
}

// fetchBelow fetches one object to its path below root.
func (d *downloads) fetchBelow(ctx context.Context, root *os.Root, dir string, t target, meter store.Progress) error {
	if parent := filepath.Dir(t.path); parent != "." {
		if err := root.MkdirAll(parent, 0o700); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if info, err := root.Lstat(t.path); err == nil && info.IsDir() {
		return fmt.Errorf("%s: %s is a directory", t.name, filepath.Join(dir, t.path))
	}
	return d.fetch(ctx, root, t, filepath.Join(dir, t.path), meter)
}

// targets returns the objects to fetch and their paths. An object whose name
// can't be one is counted as a failure.
func (d *downloads) targets(ctx context.Context, run download) ([]target, store.Progress, error) {
	var meter store.Progress = d.bar
	var wanted []target
	for _, name := range run.names {
		wanted = append(wanted, target{name, path.Base(name), notListed})
	}
	if run.allPrefix {
		list, err := d.store.ListToGet(ctx, run.prefix)
		var total int64
		for i := range list.Len() {
			o := list.At(i)
			if isHidden(o.Name, run.prefix) {
				continue
			}
			wanted = append(wanted, target{o.Name, strings.TrimPrefix(o.Name, run.prefix), i})
			total += o.Size
		}
		if len(wanted) == 0 && err == nil {
			err = fmt.Errorf("no object's name starts with %s", command.Printable(run.prefix))
		}
		if len(wanted) == 0 {
			return nil, nil, err
		}
		if err != nil {
			// What can be read is fetched, but get fails in the end.
			d.failures.add(err)
		}
		d.listing = list
		meter = d.bar.Total(total)
	}
	var targets []target
	taken := map[string]string{}
	for _, t := range wanted {
		name, relative, index := t.name, t.path, t.index
		local, err := files.LocalPath(relative, runtime.GOOS)
		if err != nil {
			d.failures.add(fmt.Errorf("%s: %w", name, err))
			continue
		}
		if files.Folds(runtime.GOOS) {
			folded := strings.ToLower(local)
			if earlier, ok := taken[folded]; ok {
				d.failures.add(fmt.Errorf("%s: %s would be the same file on this system", name, earlier))
				continue
			}
			taken[folded] = name
		}
		targets = append(targets, target{name, local, index})
	}
	return targets, meter, nil
}
