package controller

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func machine(name string) *v1alpha1.VirtualMachine {
	return &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: name, UID: types.UID("uid-" + name)}}
}

func holdersOf(names ...string) []plan.Holder {
	var all []plan.Holder
	for _, name := range names {
		vm := machine(name)
		all = append(all, plan.Holder{Key: client.ObjectKeyFromObject(vm), UID: vm.UID})
	}
	return all
}

func newClaims(woken *[]string) *Claims {
	return &Claims{
		interval: time.Second, now: func() time.Time { return time.Unix(1000, 0) }, images: map[types.NamespacedName]claimed{},
		wake: func(key types.NamespacedName) { *woken = append(*woken, key.Name) },
	}
}

func TestClaimsRememberWhomAnImageCounts(t *testing.T) {
	var woken []string
	c := newClaims(&woken)
	image := apitest.Image("ubuntu")
	assert.False(t, c.counts(image, machine("a")))

	c.note(image, holdersOf("a", "b"), true)
	assert.True(t, c.counts(image, machine("a")))
	assert.Equal(t, []string{"a", "b"}, woken)
	c.note(image, holdersOf("b", "c"), false)
	assert.False(t, c.counts(image, machine("a")))
	assert.Equal(t, []string{"a", "b", "c"}, woken, "only who was not counted before")

	reborn := machine("b")
	reborn.UID = "another"
	assert.False(t, c.counts(image, reborn), "another machine of that name")
	other := apitest.Image("ubuntu")
	other.UID = "another"
	assert.False(t, c.counts(other, machine("b")), "another image of that name")
	c.note(other, holdersOf("b"), false)
	assert.True(t, c.counts(other, machine("b")))
	assert.Equal(t, []string{"a", "b", "c", "b"}, woken, "it is counted anew")
	c.forget(client.ObjectKeyFromObject(image))
	assert.False(t, c.counts(other, machine("b")))
}

func TestAnImageIsWrittenAtMostOnceInAnInterval(t *testing.T) {
	var woken []string
	c := newClaims(&woken)
	image := apitest.Image("ubuntu")
	c.note(image, holdersOf("a"), true)
	c.now = func() time.Time { return time.Unix(1000, 0).Add(400 * time.Millisecond) }
	result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(image)})
	require.NoError(t, err)
	assert.Equal(t, 600*time.Millisecond, result.RequeueAfter, "without a look at anything")
	c.note(image, holdersOf("a", "b"), false)
	assert.Equal(t, time.Unix(1000, 0), c.known(client.ObjectKeyFromObject(image)).written, "what was not written counts for nothing")
}

func TestPausesDoubleWhileMachinesComeAndGo(t *testing.T) {
	var woken []string
	c := newClaims(&woken)
	image, at := apitest.Image("ubuntu"), time.Unix(1000, 0)
	c.now = func() time.Time { return at }
	var pauses []time.Duration
	for range 6 {
		c.note(image, holdersOf("a"), true)
		known := c.known(client.ObjectKeyFromObject(image))
		pauses = append(pauses, known.pause)
		at = at.Add(known.pause)
	}
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}, pauses)
	at = at.Add(10 * time.Second)
	c.note(image, holdersOf("a"), true)
	known := c.known(client.ObjectKeyFromObject(image))
	assert.Equal(t, time.Second, known.pause, "after a time without a write the next one is the first")

	assert.Equal(t, 0, known.changes(image, holdersOf("a")))
	assert.Equal(t, 1, known.changes(image, holdersOf()))
	assert.Equal(t, 3, known.changes(image, holdersOf("b", "c")))
	image.UID = "another"
	assert.GreaterOrEqual(t, known.changes(image, nil), many, "another image is looked at anew")
}
