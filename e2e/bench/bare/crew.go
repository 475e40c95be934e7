package bare

import "context"

// Crew works until one of it fails.
type Crew struct {
	failed chan error
}

// NewCrew makes one that does nothing yet.
func NewCrew() *Crew { return &Crew{failed: make(chan error, 1)} }

// Go adds a part that is not to end.
func (c *Crew) Go(do func() error) {
	go func() { c.fail(do()) }()
}

// Work adds so many workers that take from a pipe.
func Work[T any](ctx context.Context, c *Crew, workers int, from *Pipe[T], do func(context.Context, T) error) {
	for range workers {
		go func() {
			for {
				if err := do(ctx, from.get()); err != nil {
					c.fail(err)
				}
			}
		}()
	}
}

// Wait returns the first error.
func (c *Crew) Wait(ctx context.Context) error {
	select {
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Crew) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}
