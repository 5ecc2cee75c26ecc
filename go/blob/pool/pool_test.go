package pool_test

import (
	"testing"

	"powercloud.unidatum.com/go/blob/pool"
)

func TestPool(t *testing.T) {
	const least, limit = 1000, 5000
	p := pool.New(least, limit)
	first := p.Take(2000)
	first[0] = 1
	p.Give(first[:10])
	if again := p.Take(1500); len(again) != 1500 || again[0] != 1 {
		t.Error("memory that was given back isn't used again")
	}
	p.Give(first)
	if larger := p.Take(3000); len(larger) != 3000 || larger[0] != 0 {
		t.Error("too little memory was given out")
	}
	p.Give(make([]byte, least-1))
	if small := p.Take(least - 1); len(small) != least-1 {
		t.Errorf("%d bytes were given out", len(small))
	}
	for range 100 {
		memory := make([]byte, least)
		memory[0] = 1
		p.Give(memory)
	}
	n := 0
	for p.Take(least)[0] == 1 {
		n++
	}
	if n == 0 || n*least > limit+least {
		t.Errorf("%d pieces of %d bytes were kept, of at most %d", n, least, limit)
	}
}
