package ec

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// vector is a blob and what the parts of a set store for it.
type vector struct {
	Data     int      `json:"data"`
	Total    int      `json:"total"`
	Name     string   `json:"name"`
	Sequence uint64   `json:"sequence"`
	Blob     string   `json:"blob"`
	Shards   []string `json:"shards"`
}

const vectorFile = "testdata/shard-v1.json"

var writeVectors = flag.Bool("write-vectors", false, "write "+vectorFile+" unless it exists")

func newVector(t *testing.T, l layout, name blob.Name, sequence uint64, content []byte) vector {
	t.Helper()
	coder, err := newCoder(l)
	if err != nil {
		t.Fatal(err)
	}
	made, err := coder.encode(name, sequence, content)
	if err != nil {
		t.Fatal(err)
	}
	defer made.release()
	v := vector{Data: l.data, Total: l.total, Name: name.String(), Sequence: sequence, Blob: hex.EncodeToString(content)}
	for i := range l.total {
		raw, err := made.record(i)
		if err != nil {
			t.Fatal(err)
		}
		v.Shards = append(v.Shards, hex.EncodeToString(raw))
	}
	return v
}

// TestVectors holds the format still: the file was written by the first version
// and is never edited.
func TestVectors(t *testing.T) {
	want := []vector{
		newVector(t, layout{2, 3}, blob.Header(), 1, []byte("a key header")),
		newVector(t, layout{4, 6}, blobtest.Name(blob.KindManifest, 1), 1<<62+5, []byte("nine letters, or so: 29 bytes")),
		newVector(t, layout{3, 5}, blobtest.Name(blob.KindChunk, 1), 0, []byte("ab")),
		newVector(t, layout{1, 3}, blobtest.Name(blob.KindRecord, 1), 7, nil),
	}
	if *writeVectors {
		text, err := json.MarshalIndent(want, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(vectorFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(append(text, '\n')); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(golden, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) != len(want) {
		t.Fatalf("there are %d vectors, want %d", len(vectors), len(want))
	}
	for i, v := range vectors {
		if !slices.Equal(v.Shards, want[i].Shards) {
			t.Errorf("vector %d: other shards are written now", i)
		}
		v.read(t)
	}
}

// read puts the blob together from every K of its shards.
func (v vector) read(t *testing.T) {
	t.Helper()
	l := layout{v.Data, v.Total}
	name, err := blob.ParseName(v.Name)
	if err != nil {
		t.Fatal(err)
	}
	content := unhex(t, v.Blob)
	coder, err := newCoder(l)
	if err != nil {
		t.Fatal(err)
	}
	var shards []record
	for _, text := range v.Shards {
		records, err := parseRecords(unhex(t, text), name, l)
		if err != nil || len(records) != 1 || !records[0].intact() || records[0].sequence != v.Sequence {
			t.Fatalf("a shard is read as %+v, %v", records, err)
		}
		shards = append(shards, records[0])
	}
	reference := referenceShards(l, content)
	for i := range shards {
		if !bytes.Equal(shards[i].payload, reference[i]) {
			t.Errorf("shard %d is %x, and %x by the description of the code", i, shards[i].payload, reference[i])
		}
	}
	for _, chosen := range subsets(l.total, l.data) {
		payloads := make([][]byte, l.total)
		for _, i := range chosen {
			payloads[i] = shards[i].payload
		}
		got, err := coder.join(&shards[0].descriptor, payloads, nil)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("shards %v give %q, %v", chosen, got, err)
		}
		for i := range l.total {
			if raw, err := coder.rebuild(&shards[0].descriptor, payloads, i); err != nil || hex.EncodeToString(raw) != v.Shards[i] {
				t.Errorf("shards %v give another shard %d, %v", chosen, i, err)
			}
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// subsets returns the subsets of 0 to n-1 that have size elements.
func subsets(n, size int) [][]int {
	var all [][]int
	for bits := range 1 << n {
		var chosen []int
		for i := range n {
			if bits>>i&1 == 1 {
				chosen = append(chosen, i)
			}
		}
		if len(chosen) == size {
			all = append(all, chosen)
		}
	}
	return all
}

// referenceShards computes shards as docs/formats.md describes them, slowly.
func referenceShards(l layout, content []byte) [][]byte {
	size := (len(content) + l.data - 1) / l.data
	padded := append(bytes.Clone(content), make([]byte, size*l.data-len(content))...)
	matrix := referenceMatrix(l)
	shards := make([][]byte, l.total)
	for row := range shards {
		shards[row] = make([]byte, size)
		for at := range shards[row] {
			for column := range l.data {
				shards[row][at] ^= multiply(matrix[row][column], padded[column*size+at])
			}
		}
	}
	return shards
}

// referenceMatrix returns V times the inverse of V's first K rows, where row r of V
// has the powers 0 to K-1 of r.
func referenceMatrix(l layout) [][]byte {
	vandermonde := make([][]byte, l.total)
	for r := range vandermonde {
		power := byte(1)
		for range l.data {
			vandermonde[r] = append(vandermonde[r], power)
			power = multiply(power, byte(r))
		}
	}
	inverse := invert(vandermonde[:l.data])
	matrix := make([][]byte, l.total)
	for r := range matrix {
		matrix[r] = make([]byte, l.data)
		for c := range l.data {
			for i := range l.data {
				matrix[r][c] ^= multiply(vandermonde[r][i], inverse[i][c])
			}
		}
	}
	return matrix
}

// multiply multiplies in GF(2^8) modulo x^8+x^4+x^3+x^2+1.
func multiply(a, b byte) byte {
	var product byte
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			product ^= a
		}
		carry := a >> 7
		a = a<<1 ^ carry*0x1d
	}
	return product
}

// invert inverts a matrix by elimination.
func invert(matrix [][]byte) [][]byte {
	n := len(matrix)
	rows := make([][]byte, n)
	for i := range rows {
		rows[i] = append(bytes.Clone(matrix[i]), make([]byte, n)...)
		rows[i][n+i] = 1
	}
	for c := range n {
		for rows[c][c] == 0 {
			rows = append(rows[:c], append(rows[c+1:], rows[c])...)
		}
		factor := byte(1)
		for multiply(factor, rows[c][c]) != 1 {
			factor++
		}
		for i := range rows[c] {
			rows[c][i] = multiply(rows[c][i], factor)
		}
		for r := range n {
			if factor := rows[r][c]; r != c && factor != 0 {
				for i := range rows[r] {
					rows[r][i] ^= multiply(factor, rows[c][i])
				}
			}
		}
	}
	for i := range rows {
		rows[i] = rows[i][n:]
	}
	return rows
}

// shardsOf returns what the parts store for a blob.
func shardsOf(t testing.TB, l layout, name blob.Name, sequence uint64, content []byte) [][]byte {
	t.Helper()
	coder, err := newCoder(l)
	if err != nil {
		t.Fatal(err)
	}
	made, err := coder.encode(name, sequence, content)
	if err != nil {
		t.Fatal(err)
	}
	var shards [][]byte
	for i := range l.total {
		raw, err := made.record(i)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, bytes.Clone(raw))
	}
	made.release()
	return shards
}

func TestParseRefuses(t *testing.T) {
	l, name := layout{2, 3}, blobtest.Name(blob.KindManifest, 1)
	old, current := shardsOf(t, l, name, 5, []byte("older"))[1], shardsOf(t, l, name, 6, []byte("content"))[1]
	parse := func(data []byte) error {
		_, err := parseRecords(data, name, l)
		return err
	}
	if err := errors.Join(parse(current), parse(slices.Concat(current, old))); err != nil {
		t.Fatal(err)
	}
	change := func(at int, to ...byte) []byte {
		changed := bytes.Clone(current)
		copy(changed[at:], to)
		return changed
	}
	size := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for what, data := range map[string][]byte{
		"nothing":                    {},
		"another magic":              change(7, '2'),
		"another kind":               change(8, byte(blob.KindRecord)),
		"another ID":                 change(40, current[40]+1),
		"another K":                  change(41, 1),
		"no K":                       change(41, 0),
		"another number of parts":    change(42, 4),
		"an index beyond the parts":  change(43, 3),
		"a negative sequence":        change(44, 0x80),
		"a size beyond all limits":   change(52, size(maxSize+1)...),
		"a huge size":                change(52, size(1<<63)...),
		"a larger size":              change(52, size(9)...),
		"a smaller size":             change(52, size(3)...),
		"padding that is not zero":   change(len(current)-1, 1),
		"no padding":                 current[:len(current)-1],
		"a byte too many":            append(bytes.Clone(current), 0),
		"a version twice":            slices.Concat(current, current),
		"the older version in front": slices.Concat(old, current),
		"four versions": slices.Concat(shardsOf(t, l, name, 9, nil)[1], shardsOf(t, l, name, 8, nil)[1],
			current, old),
		"a shard of another blob behind": slices.Concat(current, shardsOf(t, l, blobtest.Name(blob.KindManifest, 2), 1, nil)[1]),
	} {
		if err := parse(data); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for n := range len(current) {
		if parse(current[:n]) == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(current))
		}
	}
}

// FuzzParseRecords: what is understood is written the same way.
func FuzzParseRecords(f *testing.F) {
	l, name := layout{2, 3}, blob.Header()
	shards := shardsOf(f, l, name, 6, []byte("content"))
	f.Add(shards[0])
	f.Add(shards[2])
	f.Add(slices.Concat(shards[1], shardsOf(f, l, name, 5, nil)[1]))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := parseRecords(data, name, l)
		var again []byte
		for _, r := range records {
			again = r.appendHeader(again, r.index)
			again = append(again, r.payload...)
			again = append(again, make([]byte, r.padding(r.size, r.index))...)
			if r.id != r.descriptor.id() {
				t.Error("a record has another version's ID")
			}
			r.intact()
		}
		if !bytes.HasPrefix(data, again) || err == nil && len(again) < len(data) {
			t.Errorf("%x was read and is written as %x", data, again)
		}
	})
}

func TestSizeFromLengths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, l := range append(layouts, layout{16, 20}, layout{200, 255}) {
		for range 300 {
			size := random.Int64N([]int64{3, 1000, 5 << 20, maxSize}[random.IntN(4)])
			lengths := make([]int64, l.total)
			for i := range lengths {
				lengths[i] = -1
			}
			// Two tell, or one where all are the same.
			first := random.IntN(l.total)
			second := (first + 1 + random.IntN(l.total-1)) % l.total
			lengths[first] = l.recordSize(size, first)
			want := 1
			if l.data > 1 {
				lengths[second] = l.recordSize(size, second)
				want = 2
			}
			if got, agree, ok := l.sizeFromLengths(lengths); !ok || got != size || agree != want {
				t.Fatalf("%v: two shards of %d bytes tell %d, %d, %v", l, size, got, agree, ok)
			}
			// Fewer that lie don't change that.
			for i := range lengths {
				lengths[i] = l.recordSize(size, i)
			}
			lies := random.IntN((l.total + 1) / 2)
			for i := range lies {
				lengths[i] += 1 + random.Int64N(600)
			}
			got, agree, ok := l.sizeFromLengths(lengths)
			if agree < l.total-lies || ok && got != size && agree == l.total-lies {
				t.Fatalf("%v: with %d lies about %d bytes: %d, %d, %v", l, lies, size, got, agree, ok)
			}
		}
	}
}

// TestLargeBlobs: shards that are made one by one are those that are made at once.
func TestLargeBlobs(t *testing.T) {
	l := layout{3, 5}
	coder, err := newCoder(l)
	if err != nil {
		t.Fatal(err)
	}
	content := blobtest.Bytes(1, wholeBlob+12345)
	made, err := coder.encode(blob.Header(), 1, content)
	if err != nil {
		t.Fatal(err)
	}
	if made.memory != nil {
		t.Error("all shards of a large blob are held at once")
	}
	payloads := make([][]byte, l.total)
	for i := range l.total {
		raw, err := made.record(i)
		if err != nil {
			t.Fatal(err)
		}
		records, err := parseRecords(raw, blob.Header(), l)
		if err != nil || !records[0].intact() {
			t.Fatalf("shard %d: %v", i, err)
		}
		if i >= l.total-l.data {
			payloads[i] = records[0].payload
		}
	}
	got, err := coder.join(&made.descriptor, payloads, nil)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the last shards give %d bytes, %v", len(got), err)
	}
}
