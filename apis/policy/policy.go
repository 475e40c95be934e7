// Package policy reads the ConfigMap sync-operator-policy: keys, defaults and bounds. It is pure.
//
// Each value is checked by itself. When any is bad, the caller keeps the policy it has, if it has one.
package policy

import (
	"fmt"
	"hash/fnv"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Keys of the ConfigMap.
const (
	KeyConcurrency          = "concurrency"
	KeyRetryLimit           = "retryLimit"
	KeyRetryBackoff         = "retryBackoffDuration"
	KeyAttemptTimeout       = "attemptTimeout"
	KeyStallTimeout         = "stallTimeout"
	KeyUnusedImageTTL       = "unusedImageTTL"
	KeyAllowedSources       = "allowedSources"
	KeyDefaultDiskSize      = "defaultDiskSize"
	KeyDefaultStorageClass  = "defaultStorageClass"
	KeyDefaultSnapshotClass = "defaultSnapshotClass"
	KeyDefaultSecretRef     = "defaultSecretRef"
	KeyWorkspaceConcurrency = "workspaceConcurrency"
)

// MaxBackoff caps the wait between two attempts, unless the first wait is longer already.
const MaxBackoff = time.Hour

// Policy is what the ConfigMap says, with the defaults filled in.
type Policy struct {
	// Concurrency is how many images may be Syncing at once, in the whole cluster. 0 admits none.
	Concurrency int
	// RetryLimit is how many retries follow a failed first attempt.
	RetryLimit int
	// RetryBackoff is the wait before the first retry; it doubles with each further one.
	RetryBackoff time.Duration
	// AttemptTimeout ends an attempt that lasts longer.
	AttemptTimeout time.Duration
	// StallTimeout ends an attempt that shows no progress for so long.
	StallTimeout time.Duration
	// UnusedImageTTL is how long an image that nothing references is kept; 0 is for ever.
	UnusedImageTTL time.Duration
	// AllowedSources are URL prefixes; none allows any public host.
	AllowedSources []Source
	// DefaultDiskSize and the others fill in what an entry of a DataSync leaves out; zero where there is none.
	DefaultDiskSize      resource.Quantity
	DefaultStorageClass  string
	DefaultSnapshotClass string
	DefaultSecretRef     string
	// WorkspaceConcurrency is how many Workspaces may be Provisioning at once.
	WorkspaceConcurrency int
}

// Default is the policy of a cluster without the ConfigMap.
func Default() Policy {
	return Policy{
		Concurrency: 4, RetryLimit: 2, RetryBackoff: 5 * time.Minute, AttemptTimeout: 2 * time.Hour,
		StallTimeout: 15 * time.Minute, WorkspaceConcurrency: 4,
	}
}

// KeyError says what is wrong with the value of a key, and what would be right.
type KeyError struct {
	Key, Value, Want string
}

// Error is one line for an event or a log.
func (e KeyError) Error() string {
	return fmt.Sprintf("%s: %q is not %s", e.Key, e.Value, e.Want)
}

// Parse reads the data of the ConfigMap. Errors are ordered by key, and the default stands where a value is bad:
// that is for a process that has no good policy to keep. Keys that it does not know are left alone: see Unknown.
func Parse(data map[string]string) (Policy, []KeyError) {
	p := Default()
	var errs []KeyError
	for _, key := range sortedKeys(data) {
		read, known := readers[key]
		if !known {
			continue
		}
		if want := read(&p, strings.TrimSpace(data[key])); want != "" {
			errs = append(errs, KeyError{Key: key, Value: shorten(data[key]), Want: want})
		}
	}
	return p, errs
}

// Unknown lists the keys that have no meaning, in order: most likely misspelt ones.
func Unknown(data map[string]string) []string {
	var keys []string
	for _, key := range sortedKeys(data) {
		if _, known := readers[key]; !known {
			keys = append(keys, key)
		}
	}
	return keys
}

// MaxAttempts is how many attempts an image has in all.
func (p Policy) MaxAttempts() int { return p.RetryLimit + 1 }

// Backoff is the wait after the failure of the attempt of that number, from 1: RetryBackoff, doubled with each
// further attempt up to MaxBackoff, and up to a tenth more. The seed chooses how much more, so that images that
// failed together do not come back together, and the same question has the same answer.
func (p Policy) Backoff(attempt int, seed string) time.Duration {
	limit := max(MaxBackoff, p.RetryBackoff)
	wait := p.RetryBackoff
	for i := 1; i < attempt && wait < limit; i++ {
		wait *= 2
	}
	wait = min(wait, limit)
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", seed, attempt)
	return wait + time.Duration(float64(wait)*0.1*float64(h.Sum32())/float64(1<<32))
}

func sortedKeys(data map[string]string) []string {
	keys := make([]string, 0, len(data))
	for key := range data {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// shorten keeps a wrong value fit for an event.
func shorten(value string) string {
	const most = 64
	if r := []rune(value); len(r) > most {
		return string(r[:most]) + "..."
	}
	return value
}
