package bare

import "sync"

// Pipe is a queue without a bound.
type Pipe[T any] struct {
	mu    sync.Mutex
	some  *sync.Cond
	queue []T
}

// NewPipe makes an empty one.
func NewPipe[T any]() *Pipe[T] {
	p := &Pipe[T]{}
	p.some = sync.NewCond(&p.mu)
	return p
}

// Put never waits.
func (p *Pipe[T]) Put(item T) {
	p.mu.Lock()
	p.queue = append(p.queue, item)
	p.mu.Unlock()
	p.some.Signal()
}

func (p *Pipe[T]) get() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		p.some.Wait()
	}
	item := p.queue[0]
	p.queue = p.queue[1:]
	return item
}
