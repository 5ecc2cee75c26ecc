package ec

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/klauspost/reedsolomon"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/pool"
)

const (
	// page is what buffers and the records in them begin at a multiple of:
	// copying between a file and memory is slow otherwise.
	page = 4096
	// wholeBlob is the size up to which all shards of a blob are made at once, in
	// bytes. Those of a larger one are made when they are written, each by
	// itself: a large manifest shouldn't take several times its size.
	wholeBlob = 8 << 20
	// block is how much of each shard of a large blob is coded at a time.
	block = 256 << 10
	// pooled bounds the memory that is kept for the next blobs, in bytes.
	pooled = 32 << 20
)

// coder splits blobs into shards and rebuilds them.
type coder struct {
	layout
	rs reedsolomon.Encoder
	// blocks has memory for all shards of a chunk.
	blocks *pool.Pool
}

func newCoder(l layout) (*coder, error) {
	// Several blobs are coded at once, so that one needs no more than the
	// goroutine it is on.
	rs, err := reedsolomon.New(l.data, l.total-l.data, reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return nil, fmt.Errorf("erasure code of %d data and %d parity shards: %w", l.data, l.total-l.data, err)
	}
	return &coder{layout: l, rs: rs, blocks: pool.New(page, pooled)}, nil
}

// encoded is a blob as shards.
type encoded struct {
	coder *coder
	descriptor
	// views are the blob's data shards.
	views [][]byte
	// memory has the records of all shards, unless the blob is large.
	memory []byte
	stride int
}

// encode splits a blob. The result refers to data, and is released after use.
func (c *coder) encode(name blob.Name, sequence uint64, data []byte) (*encoded, error) {
	size := int64(len(data))
	e := &encoded{coder: c, views: c.split(data)}
	e.descriptor = descriptor{name: name, layout: c.layout, sequence: sequence, size: size, sums: make([]byte, 0, sumSize*c.total)}
	if size > wholeBlob {
		return e, e.sumLarge()
	}
	longest := int64(c.headerSize()) + c.shardSize(size) + modulus
	e.stride = int((longest + page - 1) / page * page)
	e.memory = c.blocks.Take(e.stride * c.total)
	shards := make([][]byte, c.total)
	copy(shards, e.views)
	for i := range shards {
		payload := e.payload(i)
		if i < c.data {
			copy(payload, e.views[i])
		} else {
			shards[i] = payload
		}
	}
	if size > 0 {
		if err := c.rs.Encode(shards); err != nil {
			return nil, fmt.Errorf("coding: %w", err)
		}
	}
	for _, shard := range shards {
		sum := sha256.Sum256(shard)
		e.sums = append(e.sums, sum[:]...)
	}
	for i := range shards {
		at := e.memory[i*e.stride:]
		e.appendHeader(at[:0], i)
		clear(at[int64(c.headerSize())+c.shardSize(size) : c.recordSize(size, i)])
	}
	return e, nil
}

// payload returns the memory of a shard of a blob that isn't large.
func (e *encoded) payload(index int) []byte {
	return e.memory[index*e.stride+e.headerSize():][:e.shardSize(e.size)]
}

// split returns the data shards of a blob: parts of it, as far as they are full.
func (c *coder) split(data []byte) [][]byte {
	size := int(c.shardSize(int64(len(data))))
	views := make([][]byte, c.data)
	for i := range views {
		from, to := min(i*size, len(data)), min((i+1)*size, len(data))
		if views[i] = data[from:to:to]; to-from < size {
			views[i] = append(make([]byte, 0, size), data[from:to]...)[:size]
		}
	}
	return views
}

// record returns the record of the shard with an index. It is valid until
// release.
func (e *encoded) record(index int) ([]byte, error) {
	length := e.recordSize(e.size, index)
	if e.memory != nil {
		return e.memory[index*e.stride:][:length:length], nil
	}
	made := e.appendHeader(make([]byte, 0, length), index)
	if index < e.data {
		return append(made, e.views[index]...)[:length], nil
	}
	err := e.codeBlocks(func(shards [][]byte) { made = append(made, shards[index]...) })
	if err != nil {
		return nil, err
	}
	return made[:length], nil
}

// asRecord is record with what is known of it.
func (e *encoded) asRecord(index int) (record, error) {
	raw, err := e.record(index)
	if err != nil {
		return record{}, err
	}
	return record{descriptor: e.descriptor, id: e.id(), index: index, raw: raw}, nil
}

// weight returns what record takes in memory besides what is there already, in bytes.
func (e *encoded) weight(index int) int64 {
	if e.memory != nil {
		return 0
	}
	return e.recordSize(e.size, index)
}

// sumLarge computes the sums of a large blob's shards without keeping them.
func (e *encoded) sumLarge() error {
	hashes := make([]hash.Hash, e.total)
	for i := range hashes {
		hashes[i] = sha256.New()
	}
	err := e.codeBlocks(func(shards [][]byte) {
		for i, shard := range shards {
			hashes[i].Write(shard)
		}
	})
	for _, h := range hashes {
		e.sums = h.Sum(e.sums)
	}
	return err
}

// codeBlocks calls use with a block of every shard after the other.
func (e *encoded) codeBlocks(use func(shards [][]byte)) error {
	parity := make([]byte, (e.total-e.data)*block)
	size := int(e.shardSize(e.size))
	shards := make([][]byte, e.total)
	for at := 0; at < size; at += block {
		n := min(block, size-at)
		for i := range shards {
			if i < e.data {
				shards[i] = e.views[i][at : at+n]
			} else {
				shards[i] = parity[(i-e.data)*block:][:n]
			}
		}
		if err := e.coder.rs.Encode(shards); err != nil {
			return fmt.Errorf("coding: %w", err)
		}
		use(shards)
	}
	return nil
}

// release gives memory back.
func (e *encoded) release() {
	if e.memory != nil {
		e.coder.blocks.Give(e.memory)
		e.memory = nil
	}
}

// join puts a blob together from shards, by their index, of which at least as many
// as data shards are not nil, into buf's memory when its capacity is enough. The
// shards' sums have been compared.
func (c *coder) join(d *descriptor, payloads [][]byte, buf []byte) ([]byte, error) {
	size := int(d.size)
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	out := buf[:size]
	if size == 0 {
		return out, nil
	}
	length := int(c.shardSize(d.size))
	missing := false
	pieces := make([][]byte, c.total)
	copy(pieces, payloads)
	for i := range c.data {
		if pieces[i] != nil {
			continue
		}
		missing = true
		if to := (i + 1) * length; to <= size {
			pieces[i] = out[i*length : i*length : to] // rebuilt in its place
		}
	}
	if missing {
		if err := c.rs.ReconstructData(pieces); err != nil {
			return nil, fmt.Errorf("rebuilding: %w", err)
		}
	}
	for i := range c.data {
		from := min(i*length, size)
		n := copy(out[from:min(from+length, size)], pieces[i])
		if !allZero(pieces[i][n:]) {
			return nil, fmt.Errorf("what follows the blob in its last shard is not zero: %w", blob.ErrDamaged)
		}
	}
	return out, nil
}

// rebuild returns the record of the shard with an index, from others of the same
// version.
func (c *coder) rebuild(d *descriptor, payloads [][]byte, index int) ([]byte, error) {
	length := d.recordSize(d.size, index)
	made := d.appendHeader(make([]byte, 0, length), index)
	end := int64(len(made)) + d.shardSize(d.size)
	if payloads[index] != nil {
		copy(made[len(made):end], payloads[index])
	} else if d.size > 0 {
		pieces := make([][]byte, c.total)
		copy(pieces, payloads)
		pieces[index] = made[len(made):len(made):end]
		required := make([]bool, c.total)
		required[index] = true
		if err := c.rs.ReconstructSome(pieces, required); err != nil {
			return nil, fmt.Errorf("rebuilding: %w", err)
		}
	}
	sum := sha256.Sum256(made[len(made):end])
	if !bytes.Equal(sum[:], d.sum(index)) {
		return nil, fmt.Errorf("shard %d can't be rebuilt, as the others contradict its sum", index)
	}
	return made[:length], nil
}
