package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/files"
	"powercloud.unidatum.com/go/admin/progress"
	"powercloud.unidatum.com/go/store"
)

// standardStream stands for standard input in put and output in get.
const standardStream = "-"

func (g *group) putCommand() *cli.Command {
	return &cli.Command{
		Name:      "put",
		Usage:     "Store files",
		ArgsUsage: "NAME FILE | PREFIX/ FILE...",
		UsageText: `pcctl --repo LOC,... put [--json] NAME FILE
pcctl --repo LOC,... put [--json] NAME DIR
pcctl --repo LOC,... put [--json] PREFIX/ FILE|DIR...`,
		Description: `Encrypts FILE and stores it as object NAME in every location, and prints its
size and number of chunks. An object that has the name is replaced.

  put NAME FILE        stores FILE as NAME; FILE "-" is standard input
  put NAME DIR         stores DIR/x/y as NAME/x/y
  put PREFIX/ FILE...  stores each FILE as PREFIX/FILE's last element, and a
                       directory's files below that; "/" is no prefix

Only regular files in a directory are stored. Symbolic links, devices, pipes and
sockets in it are left out with a warning, and so are storage locations of the
cluster; empty directories leave no trace. A FILE that is named on the command
line is read whatever it is, through a link too. A file that can't be read
doesn't keep the others from being stored, but makes put fail in the end.

With --json, a line for each object:
{"name": NAME, "bytes": N, "chunks": N, "modified": TIME}`,
		Flags:  []cli.Flag{command.JSONFlag()},
		Action: action(2, -1, g.put),
	}
}

// upload is one argument of put and the name that it is stored under.
type upload struct {
	name, path string
	info       os.FileInfo // nil for standard input
}

func (g *group) put(ctx context.Context, cmd *cli.Command, args []string) error {
	uploads, err := planUploads(args[0], args[1:])
	if err != nil {
		return err
	}
	// A file that isn't there is said before the passphrase is asked for.
	for i := range uploads {
		u := &uploads[i]
		if u.path == standardStream {
			continue
		}
		if u.info, err = os.Stat(u.path); err != nil {
			return err
		}
	}
	bar := g.Bar("storing", progress.Bytes)
	defer bar.Close()
	s, err := g.Objects(ctx, cmd, bar)
	if err != nil {
		return err
	}
	defer g.Leave(ctx, s.Repository)
	p := &putting{group: g, bar: bar, json: cmd.Bool("json"), omit: localDirectories(s.Specs)}
	p.failures = &failures{group: g, bar: bar}
	if err := p.run(ctx, s.Store, uploads); err != nil {
		return err
	}
	g.WarnMissed(s)
	return nil
}

// planUploads decides which name each argument is stored under.
func planUploads(name string, paths []string) ([]upload, error) {
	prefix, into := strings.CutSuffix(name, "/")
	if !into {
		if len(paths) > 1 {
			return nil, command.Usagef("put: %q takes one file; to store several below it, write %q", name, name+"/")
		}
		if err := errors.Join(store.ValidName(name), refuseSystem(name)); err != nil {
			return nil, err
		}
		return []upload{{name: name, path: paths[0]}}, nil
	}
	if prefix != "" {
		if err := store.ValidName(prefix); err != nil {
			return nil, err
		}
		prefix += "/"
	}
	var uploads []upload
	from := map[string]string{}
	for _, path := range paths {
		if path == standardStream {
			return nil, command.Usagef("put: standard input needs a name of its own, not %q", name)
		}
		base, err := lastElement(path)
		if err != nil {
			return nil, err
		}
		object := prefix + base
		if err := refuseSystem(object); err != nil {
			return nil, err
		}
		if earlier, taken := from[object]; taken {
			return nil, command.Usagef("put: %s and %s would both be stored as %s", earlier, path, object)
		}
		from[object] = path
		uploads = append(uploads, upload{name: object, path: path})
	}
	return uploads, nil
}

// refuseSystem returns an error for a name that is one of the system's own, or would
// have files of a directory below become so.
func refuseSystem(name string) error {
	if store.IsSystem(name) || store.IsSystem(name+"/") {
		return fmt.Errorf("%s: the names below %s are the system's own", name, store.SystemPrefix)
	}
	return nil
}

// isHidden reports whether an object is one of the system's own, which are left out
// where a prefix doesn't ask for them.
func isHidden(name, prefix string) bool {
	return store.IsSystem(name) && !store.IsSystem(prefix)
}

// lastElement returns the name that a file has in its directory, also when the
// path to it is "." or "..".
func lastElement(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	base := filepath.Base(absolute)
	if base == string(filepath.Separator) || base == filepath.VolumeName(absolute) {
		return "", command.Usagef("put: %s has no name to be stored under; give one instead of a prefix", path)
	}
	return base, nil
}

// putting is a put at work.
type putting struct {
	group    *group
	bar      *progress.Bar
	json     bool
	omit     []os.FileInfo
	failures *failures
	// stored and output belong to the callback that is told of objects.
	stored int
	output error
}

func (p *putting) run(ctx context.Context, s *store.Store, uploads []upload) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.PutAll(ctx, p.sources(ctx, uploads), p.meter(ctx, uploads), func(objects []store.Object) {
		p.stored += len(objects)
		if p.output == nil {
			p.bar.Print(func() { p.output = p.print(objects) })
			if p.output != nil {
				// Nobody sees what is stored any more.
				cancel()
			}
		}
	})
	p.bar.Close()
	if p.output != nil {
		return p.output
	}
	var unreadable *store.SourceError
	if err != nil && !errors.As(err, &unreadable) {
		return err
	}
	if single := len(uploads) == 1 && (uploads[0].info == nil || !uploads[0].info.IsDir()); single && err != nil {
		return err
	}
	if err != nil {
		p.failures.add(err)
	}
	switch {
	case p.failures.count > 0:
		return fmt.Errorf("%d of %d files could not be stored", p.failures.count, p.failures.count+p.stored)
	case p.stored == 0:
		return errors.New("nothing was stored: there is no regular file in what was given")
	}
	return nil
}

// print prints what was stored, all at once: a write for each of many small files
// would take a good part of the time.
func (p *putting) print(objects []store.Object) error {
	var lines bytes.Buffer
	for _, o := range objects {
		if p.json {
			if err := command.WriteJSON(&lines, newObjectResult(o)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&lines, "stored %s (%d bytes, %d chunks)\n", command.Printable(o.Name), o.Size, o.Chunks)
	}
	return p.group.Env.Printf("%s", lines.Bytes())
}

// meter returns what the store tells its progress to. On a terminal the whole
// amount is found out first, so that the bar means something.
func (p *putting) meter(ctx context.Context, uploads []upload) store.Progress {
	if !p.group.Env.ShowProgress {
		return p.bar
	}
	var total int64
	for _, u := range uploads {
		switch {
		case u.info == nil:
		case u.info.IsDir():
			tree := p.tree(u)
			tree.Skipped, tree.Failed = func(string, string) {}, func(string, error) {}
			for entry := range tree.Files() {
				if ctx.Err() != nil {
					return p.bar
				}
				total += entry.Info.Size()
			}
		case u.info.Mode().IsRegular():
			total += u.info.Size()
		}
	}
	return p.bar.Total(total)
}

// sources returns what is to be stored, one file after the other.
func (p *putting) sources(ctx context.Context, uploads []upload) func(yield func(store.Source) bool) {
	return func(yield func(store.Source) bool) {
		for _, u := range uploads {
			switch {
			case u.info == nil:
				source := store.Source{Name: u.name, Size: store.UnknownSize, Open: func() (io.ReadCloser, error) {
					return io.NopCloser(files.Reader(ctx, p.group.Env.Stdin)), nil
				}}
				if !yield(source) {
					return
				}
			case u.info.IsDir():
				for entry := range p.tree(u).Files() {
					if !yield(treeSource(u.name, entry)) {
						return
					}
				}
			default:
				if !yield(fileSource(ctx, u)) {
					return
				}
			}
		}
	}
}

func (p *putting) tree(u upload) files.Tree {
	return files.Tree{
		Top:  u.path,
		Omit: p.omit,
		Skipped: func(path, why string) {
			p.bar.Print(func() { p.group.Warn("%s is %s: not stored", command.Printable(path), why) })
		},
		Failed: func(_ string, err error) { p.failures.add(err) },
	}
}

// treeSource is a file that was found in a directory.
func treeSource(prefix string, entry files.Entry) store.Source {
	return store.Source{
		Name:     prefix + "/" + entry.Name,
		Open:     func() (io.ReadCloser, error) { return files.OpenRegular(entry.Path) },
		Size:     entry.Info.Size(),
		FileTime: entry.Info.ModTime(),
		FileMode: entry.Info.Mode().Perm(),
	}
}

// fileSource is a file that was named on the command line.
func fileSource(ctx context.Context, u upload) store.Source {
	if u.info.Mode().IsRegular() {
		return store.Source{
			Name:     u.name,
			Open:     func() (io.ReadCloser, error) { return os.Open(u.path) },
			Size:     u.info.Size(),
			FileTime: u.info.ModTime(),
			FileMode: u.info.Mode().Perm(),
		}
	}
	return store.Source{Name: u.name, Size: store.UnknownSize, Open: func() (io.ReadCloser, error) {
		file, err := files.Open(ctx, u.path, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		return stream{files.Reader(ctx, file), file}, nil
	}}
}

// stream is a pipe or device that is read until an interruption.
type stream struct {
	io.Reader
	io.Closer
}
