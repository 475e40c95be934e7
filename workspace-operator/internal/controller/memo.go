package controller

import (
	"sync"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memo remembers something of each Workspace that spares work. Nothing is decided that could not be decided without it.
type memo[T any] struct {
	mu    sync.Mutex
	items map[types.NamespacedName]remembered[T]
}

type remembered[T any] struct {
	uid  types.UID
	item T
}

// of is what was remembered of this very Workspace.
func (m *memo[T]) of(ws *v1alpha1.Workspace) (item T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.items[client.ObjectKeyFromObject(ws)]
	return known.item, ok && known.uid == ws.UID
}

func (m *memo[T]) note(ws *v1alpha1.Workspace, item T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[types.NamespacedName]remembered[T]{}
	}
	m.items[client.ObjectKeyFromObject(ws)] = remembered[T]{ws.UID, item}
}

func (m *memo[T]) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.items, key)
}
