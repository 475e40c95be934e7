package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hanging is a client whose reads wait for an event that never comes, unless they are told not to wait.
type hanging struct {
	client.Client
	lists int
}

func (hanging) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func (h *hanging) List(ctx context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	if (&client.ListOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		h.lists++
		return nil
	}
	return h.Get(ctx, types.NamespacedName{}, nil)
}

var errLive = errors.New("the API server was asked")

type liveReader struct{ client.Reader }

func (liveReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errLive
}

func TestReadsDoNotWaitForEver(t *testing.T) {
	cached := &hanging{}
	p := &patient{Client: cached, live: liveReader{}, patience: 10 * time.Millisecond}
	require.ErrorIs(t, p.Get(t.Context(), types.NamespacedName{}, &v1alpha1.VirtualMachine{}), errLive)
	require.NoError(t, p.List(t.Context(), &v1alpha1.VirtualMachineList{}))
	assert.Equal(t, 1, cached.lists, "the cache as it is")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Get(ended, types.NamespacedName{}, &v1alpha1.VirtualMachine{}), context.Canceled, "who has no time left asks nobody")
}
