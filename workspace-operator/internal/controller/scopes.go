package controller

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewCache makes the cache also while a kind of Open Terrain is not served. Only to be made, a cache asks of each
// kind whether it is namespaced, and takes no for an answer badly; later it asks again for as long as it takes.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	mapper := &lenientMapper{RESTMapper: options.Mapper}
	options.Mapper = mapper
	c, err := cache.New(config, options)
	mapper.strict.Store(true)
	return c, err
}

// lenientMapper knows the scopes of the kinds that the operator needs, until it is strict.
type lenientMapper struct {
	meta.RESTMapper

	strict atomic.Bool
}

// RESTMapping implements meta.RESTMapper.
func (m *lenientMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if m.strict.Load() || !meta.IsNoMatchError(err) {
		return mapping, err
	}
	for _, need := range needs {
		if need.kind == kind {
			return &meta.RESTMapping{Scope: need.scope}, nil
		}
	}
	return nil, err
}
