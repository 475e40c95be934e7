package policy_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestWithoutTheConfigMapDefaultsHold(t *testing.T) {
	p, errs := policy.Parse(nil)
	assert.Empty(t, errs)
	assert.Equal(t, policy.Policy{
		Concurrency: 4, RetryLimit: 2, RetryBackoff: 5 * time.Minute, AttemptTimeout: 2 * time.Hour,
		StallTimeout: 15 * time.Minute, WorkspaceConcurrency: 4,
	}, p)
	assert.Equal(t, 3, p.MaxAttempts())
}

func TestGoodValues(t *testing.T) {
	p, errs := policy.Parse(map[string]string{
		"concurrency": "8", "retryLimit": "0", "retryBackoffDuration": "90s", "attemptTimeout": "30m",
		"stallTimeout": "1m30s", "unusedImageTTL": "720h", "defaultDiskSize": "24Gi", "defaultStorageClass": "gp3",
		"defaultSnapshotClass": "ebs.snapshot", "defaultSecretRef": "keys", "workspaceConcurrency": "1",
		"allowedSources": "\n# ours\nhttps://images.example.com/labs/\n  docker://quay.io/labs  \n\n",
	})
	assert.Empty(t, errs)
	assert.Equal(t, policy.Policy{
		Concurrency: 8, RetryLimit: 0, RetryBackoff: 90 * time.Second, AttemptTimeout: 30 * time.Minute,
		StallTimeout: 90 * time.Second, UnusedImageTTL: 720 * time.Hour, DefaultDiskSize: resource.MustParse("24Gi"),
		DefaultStorageClass: "gp3", DefaultSnapshotClass: "ebs.snapshot", DefaultSecretRef: "keys", WorkspaceConcurrency: 1,
		AllowedSources: sources(t, "https://images.example.com/labs/", "docker://quay.io/labs"),
	}, p)
	assert.Equal(t, 1, p.MaxAttempts())
}

func TestBounds(t *testing.T) {
	good := map[string][]string{
		"concurrency":          {"0", "1000", " 4 ", "4\n", "+4"},
		"retryLimit":           {"0", "100"},
		"workspaceConcurrency": {"0", "1000"},
		"retryBackoffDuration": {"1ms", "8760h"},
		"attemptTimeout":       {"1s", "8760h"},
		"stallTimeout":         {"1s", "8760h"},
		"unusedImageTTL":       {"0", "0s", "8760h"},
		"allowedSources":       {"", "# none", "http://127.0.0.1:8080", "docker://[fd00::1]:5000/labs/", "oci-archive:///images", "https://S3.example.com./%6cabs"},
		"defaultDiskSize":      {"", "1", "24Gi", "1.5Ti", "64Ti", "500M"},
		"defaultStorageClass":  {"", "gp3", "a.b-c"},
		"defaultSnapshotClass": {"", "gp3"},
		"defaultSecretRef":     {"", "keys"},
	}
	for key, values := range good {
		for _, value := range values {
			_, errs := policy.Parse(map[string]string{key: value})
			assert.Empty(t, errs, "%s: %q", key, value)
		}
	}
	assert.Len(t, good, reflect.TypeFor[policy.Policy]().NumField(), "each key has its line")
}

func TestBadValuesNameTheKeyAndWhatWouldBeRight(t *testing.T) {
	whole := func(most string) string { return "is not a whole number from 0 to " + most }
	cases := map[string]struct {
		values []string
		want   string
	}{
		"concurrency":          {[]string{"", "four", "-1", "1001", "4.5", "0x4", "99999999999999999999"}, whole("1000")},
		"retryLimit":           {[]string{"", "-1", "101"}, whole("100")},
		"workspaceConcurrency": {[]string{"", "-1", "1001"}, whole("1000")},
		"retryBackoffDuration": {[]string{"", "5", "0s", "-5m", "8761h", "5 minutes", "999999999999h"}, "is not a duration such as 90s, 5m or 2h, from 1ms to"},
		"attemptTimeout":       {[]string{"", "0", "999ms", "8761h"}, "is not a duration such as 90s, 5m or 2h, from 1s to"},
		"stallTimeout":         {[]string{"", "0", "999ms", "1d"}, "is not a duration such as 90s, 5m or 2h, from 1s to"},
		"unusedImageTTL":       {[]string{"", "-1s", "8761h", "never"}, "is not a duration such as 90s, 5m or 2h, from 0s to"},
		"allowedSources": {[]string{
			"images.example.com", "/labs", "//images.example.com", "https://", "https:///labs", "https://user:pw@host/", "https://ok/\nnot ok", "https://%zz",
			"ftp://images.example.com/", "s3://labs/", "HTTPS://images.example.com/", "https://*.example.com/", "https://images.example.com/*/../x",
			"https://images.example.com/?a=b", "https://images.example.com/#a", "https://images.example.com/labs/../", "https://images.example.com/./labs",
			"https://images.example.com/labs%2f..%2f", "https://images.example.com/%2e%2e/", "https://images.example.com/%", "https://images.example.com\\labs",
			"https://bücher.example/", "https://127.1/", "http://2130706433/", "http://[fe80::1%25eth0]/", "http://[::1", "https://images.example.com:0/",
			"https://images.example.com:https/", "https://images.example.com:/", "https://images..example.com/",
			"docker://quay.io/labs/disk:v1", "docker://quay.io/labs@sha256:" + strings.Repeat("a", 64), "docker://labs", "docker://quay.io/Labs", "docker://quay.io/labs/../x",
			"oci-archive:///labs/../x",
		}, "is not a list of URL prefixes with scheme and host, one a line"},
		"defaultDiskSize":      {[]string{"0", "-1Gi", "24 Gi", "24GiB", "big", "1e3", "1e-2147483647", "1e2147483647", "65Ti", "99999999999999999999Ei"}, "is not a size such as 24Gi"},
		"defaultStorageClass":  {[]string{"GP3", "a b", "-a", strings.Repeat("a", 254)}, "is not the name of an object"},
		"defaultSnapshotClass": {[]string{"a/b"}, "is not the name of an object"},
		"defaultSecretRef":     {[]string{"a_b"}, "is not the name of an object"},
	}
	for key, c := range cases {
		for _, value := range c.values {
			p, errs := policy.Parse(map[string]string{key: value})
			if assert.Len(t, errs, 1, "%s: %q", key, value) {
				assert.Equal(t, key, errs[0].Key)
				assert.Contains(t, errs[0].Error(), key+": ")
				assert.Contains(t, errs[0].Error(), c.want)
			}
			assert.Equal(t, policy.Default(), p, "the default stands for %s: %q", key, value)
		}
	}
	assert.Len(t, cases, reflect.TypeFor[policy.Policy]().NumField(), "each key has its line")
}

func TestErrorsAreOrderedAndShort(t *testing.T) {
	_, errs := policy.Parse(map[string]string{
		"stallTimeout": "x", "concurrency": strings.Repeat("ä", 100), "attemptTimeout": "y", "retryLimit": "1",
	})
	require.Len(t, errs, 3)
	assert.Equal(t, []string{"attemptTimeout", "concurrency", "stallTimeout"}, []string{errs[0].Key, errs[1].Key, errs[2].Key})
	assert.Equal(t, `concurrency: "`+strings.Repeat("ä", 64)+`..." is not a whole number from 0 to 1000`, errs[1].Error())
}

func TestTooManySources(t *testing.T) {
	_, errs := policy.Parse(map[string]string{"allowedSources": strings.Repeat("https://a.example/\n", 1001)})
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0].Error(), "is not a list of at most 1000 URL prefixes")
}

func TestUnknownKeysAreLeftAlone(t *testing.T) {
	data := map[string]string{"retrylimit": "1", "concurrency": "2", "another": ""}
	p, errs := policy.Parse(data)
	assert.Empty(t, errs)
	assert.Equal(t, 2, p.Concurrency)
	assert.Equal(t, []string{"another", "retrylimit"}, policy.Unknown(data))
	assert.Empty(t, policy.Unknown(nil))
}

func TestBackoffDoublesUpToTheCap(t *testing.T) {
	p := policy.Default()
	for attempt, want := range map[int]time.Duration{
		1: 5 * time.Minute, 2: 10 * time.Minute, 3: 20 * time.Minute, 4: 40 * time.Minute, 5: time.Hour, 6: time.Hour,
		100: time.Hour,
	} {
		got := p.Backoff(attempt, "uid")
		assert.GreaterOrEqual(t, got, want, "attempt %d", attempt)
		assert.Less(t, got, want+want/10, "attempt %d", attempt)
	}
	p.RetryBackoff = 3 * time.Hour
	assert.GreaterOrEqual(t, p.Backoff(1, "uid"), 3*time.Hour, "a first wait above the cap is taken at its word")
	assert.Less(t, p.Backoff(9, "uid"), 3*time.Hour+18*time.Minute, "and does not grow")
}

func TestBackoffSpreadsImagesThatFailedTogether(t *testing.T) {
	p, seen := policy.Default(), map[time.Duration]bool{}
	for _, seed := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		seen[p.Backoff(1, seed)] = true
	}
	assert.Greater(t, len(seen), 6)
}

func TestBackoffIsBoundedAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Policy{RetryBackoff: time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(365*24*time.Hour)).Draw(t, "first"))}
		attempt := rapid.IntRange(1, 10_000).Draw(t, "attempt")
		seed := rapid.String().Draw(t, "seed")
		got := p.Backoff(attempt, seed)
		if again := p.Backoff(attempt, seed); again != got {
			t.Fatalf("%s, then %s", got, again)
		}
		limit := max(policy.MaxBackoff, p.RetryBackoff)
		base := p.RetryBackoff
		for i := 1; i < attempt && base < limit; i++ {
			base = min(2*base, limit)
		}
		if got < base || got > base+base/10 {
			t.Fatalf("%s is not between %s and a tenth more", got, base)
		}
	})
}

// FuzzPolicy puts one value under one key, known or not.
func FuzzPolicy(f *testing.F) {
	for _, key := range []string{
		"concurrency", "retryLimit", "retryBackoffDuration", "attemptTimeout", "stallTimeout", "unusedImageTTL",
		"allowedSources", "defaultDiskSize", "defaultStorageClass", "defaultSnapshotClass", "defaultSecretRef",
		"workspaceConcurrency", "unknown", "",
	} {
		for _, value := range []string{"", "4", "-1", "5m", "24Gi", "1e-999999999", "https://a.example/\n#", "\x00\xff", "gp3"} {
			f.Add(key, value)
		}
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		data := map[string]string{key: value}
		p, errs := policy.Parse(data)
		known := len(policy.Unknown(data)) == 0
		if len(errs) > 1 || (len(errs) == 1 && (!known || errs[0].Key != key || errs[0].Want == "")) {
			t.Fatalf("errors of %q: %v", key, errs)
		}
		if p.Concurrency < 0 || p.RetryLimit < 0 || p.RetryBackoff <= 0 || p.AttemptTimeout <= 0 || p.StallTimeout <= 0 ||
			p.UnusedImageTTL < 0 || p.DefaultDiskSize.Sign() < 0 || p.WorkspaceConcurrency < 0 {
			t.Fatalf("out of bounds: %+v", p)
		}
		if again, _ := policy.Parse(data); !reflect.DeepEqual(again, p) {
			t.Fatal("the same data gave another policy")
		}
	})
}
