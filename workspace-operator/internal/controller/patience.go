package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a read may wait for the cache to show what this process has written. Events take milliseconds.
const patience = 2 * time.Second

// patient is a client whose reads do not wait for ever. controller-runtime waits for an event of the kind that is at least
// as new as the last write to the object; when the object was deleted while the watch was broken off, the new list does not
// have it, and that event never comes: until another object of the kind changes, every look at it would hang.
type patient struct {
	client.Client
	live     client.Reader
	patience time.Duration
}

// NewClient is the client of the manager, with patience.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	options.Cache = nil
	live, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return &patient{Client: c, live: live, patience: patience}, nil
}

// Get asks the API server itself when the cache does not come up to date.
func (p *patient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	waiting, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	err := p.Client.Get(waiting, key, obj, opts...)
	if outOfPatience(ctx, err) {
		return p.live.Get(ctx, key, obj, opts...)
	}
	return err
}

// List makes do with the cache as it is: its indexes are not the API server's. What is decided on a list and cannot be taken
// back is looked at live first.
func (p *patient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	waiting, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	err := p.Client.List(waiting, list, opts...)
	if outOfPatience(ctx, err) {
		return p.Client.List(ctx, list, append(slices.Clip(opts), asItIs{})...)
	}
	return err
}

// outOfPatience says that the wait ended, and not the caller's own time.
func outOfPatience(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// asItIs reads the cache without waiting.
type asItIs struct{}

// ApplyToList implements client.ListOption.
func (asItIs) ApplyToList(o *client.ListOptions) { o.DisableReadYourWritesConsistency = true }
