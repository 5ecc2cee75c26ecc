package logs

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"powercloud.unidatum.com/go/sys/kernellog"
)

// kernel stands for the kernel's log: a ring of records that can be opened again and
// again.
type kernel struct {
	mu      sync.Mutex
	records []kernellog.Record
	next    uint64
	// fails is what reading ends with, once everything was read.
	fails error
	more  chan struct{}
	opens int
}

func newKernel() *kernel { return &kernel{more: make(chan struct{})} }

// say adds a record, in the kernel's own name or in that of a program.
func (k *kernel) say(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	r := kernellog.Record{Priority: kernellog.Info, Text: text}
	if strings.HasPrefix(text, "pcd: ") {
		r.Facility, r.Priority = 3, kernellog.Debug
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r.Sequence = k.next
	r.Uptime = time.Duration(k.next) * time.Second
	k.next++
	k.records = append(k.records, r)
	k.wake()
}

// fail has reading fail, or not any more.
func (k *kernel) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fails = err
	k.wake()
}

func (k *kernel) wake() {
	close(k.more)
	k.more = make(chan struct{})
}

// forget gives up the oldest records.
func (k *kernel) forget(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = k.records[n:]
}

func (k *kernel) open() (KernelLog, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opens++
	return &kernelReader{kernel: k, ended: make(chan struct{})}, nil
}

// kernelReader is an open kernel's log.
type kernelReader struct {
	kernel *kernel
	at     uint64
	once   sync.Once
	ended  chan struct{}
}

func (r *kernelReader) Next() (kernellog.Record, error) {
	for {
		r.kernel.mu.Lock()
		more, fails := r.kernel.more, r.kernel.fails
		for _, record := range r.kernel.records {
			if record.Sequence >= r.at {
				r.at = record.Sequence + 1
				r.kernel.mu.Unlock()
				if record.Text == "garbage" {
					return kernellog.Record{}, fmt.Errorf("%w: garbage", kernellog.ErrMalformed)
				}
				return record, nil
			}
		}
		r.kernel.mu.Unlock()
		if fails != nil {
			return kernellog.Record{}, fails
		}
		select {
		case <-r.ended:
			return kernellog.Record{}, os.ErrDeadlineExceeded
		case <-more:
		}
	}
}

// SetDeadline ends reading once everything was read.
func (r *kernelReader) SetDeadline(time.Time) error {
	r.once.Do(func() { close(r.ended) })
	return nil
}

func (r *kernelReader) Close() error { return nil }
