package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// answered reports whether an error is a location's answer.
func answered(err error) bool { return errors.Is(err, blob.ErrNotFound) || blob.Unusable(err) }

// put stores a blob.
func (p *place) put(c *command, name blob.Name, data []byte) error {
	p.model.aboutToPut(c, p, name, data)
	if before := p.content(name); before != nil && !bytes.Equal(before, data) {
		p.past[name] = before
	}
	return p.memory.Put(context.Background(), name, data)
}

// delete removes a blob.
func (p *place) delete(c *command, name blob.Name) error {
	p.model.aboutToDelete(c, p, name)
	if before := p.content(name); before != nil {
		p.past[name] = before
	}
	return p.memory.Delete(context.Background(), name)
}

// lies reports whether a liar lies about a certain blob; it is about every other
// one.
func (p *place) lies(name blob.Name) bool {
	return mix(p.salt, uint64(name.Kind), uint64(name.ID[0]), uint64(name.ID[1]))%3 != 0
}

// get returns a blob, or what the location claims it to be.
func (p *place) get(name blob.Name) ([]byte, error) {
	data := p.content(name)
	if p.lies(name) {
		switch p.fault {
		case altered:
			data = flip(data)
		case truncated:
			data = data[:len(data)/2]
		case swapped:
			names := p.names(name.Kind)
			if i := slices.Index(names, name); i >= 0 {
				data = p.content(names[(i+1)%len(names)])
			}
		case outdated:
			if past := p.past[name]; past != nil {
				data = bytes.Clone(past)
			}
		case hiding:
			data = nil
		case inventing:
			if data == nil {
				data = []byte("made up")
			}
		case forging:
			if former := cmp.Or(string(p.past[name]), string(data)); p.member.coded() {
				data = p.member.forge([]byte(former), data)
			}
		}
	}
	if data == nil {
		return nil, blob.ErrNotFound
	}
	return data, nil
}

// stat describes a blob.
func (p *place) stat(name blob.Name) (blob.Info, error) {
	info, err := p.memory.Stat(context.Background(), name)
	if p.lies(name) {
		switch p.fault {
		case hiding:
			return blob.Info{}, blob.ErrNotFound
		case truncated:
			info.Size /= 2
		case inventing:
			for _, other := range p.others {
				if err != nil {
					info, err = other.memory.Stat(context.Background(), name)
				}
			}
		}
	}
	return info, err
}

// list lists the blobs of a kind.
func (p *place) list(kind blob.Kind) []blob.Info {
	var infos []blob.Info
	add := func(info blob.Info) error {
		infos = append(infos, info)
		return nil
	}
	_ = p.memory.List(context.Background(), kind, add) // never fails
	switch p.fault {
	case hiding:
		infos = slices.DeleteFunc(infos, func(info blob.Info) bool { return p.lies(info.Name) })
	case inventing:
		infos = nil
		seen := map[blob.Name]bool{}
		for _, other := range p.others {
			for _, name := range other.names(kind) {
				if !seen[name] {
					seen[name] = true
					info, _ := other.memory.Stat(context.Background(), name) // It is listed.
					infos = append(infos, info)
				}
			}
		}
		if kind == blob.KindManifest {
			infos = append(infos, blob.Info{Name: blob.Name{Kind: kind, ID: [32]byte{byte(p.salt), 1}}, Size: 7, Mark: "1"})
		}
		slices.SortFunc(infos, func(a, b blob.Info) int { return bytes.Compare(a.Name.ID[:], b.Name.ID[:]) })
	case unordered:
		slices.Reverse(infos)
	}
	return infos
}
