package policy_test

import (
	"encoding/binary"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sources are parsed prefixes.
func sources(t require.TestingT, prefixes ...string) []policy.Source {
	all := make([]policy.Source, 0, len(prefixes))
	for _, prefix := range prefixes {
		source, wrong := policy.ParseSource(prefix)
		require.Empty(t, wrong, prefix)
		all = append(all, source)
	}
	return all
}

// listed is a policy with those prefixes.
func listed(t require.TestingT, prefixes ...string) policy.Policy {
	p := policy.Default()
	p.AllowedSources = sources(t, prefixes...)
	return p
}

// typeOf is the sourceType that goes with the URL.
func typeOf(raw string) string {
	if strings.HasPrefix(raw, "docker:") || strings.HasPrefix(raw, "oci-archive:") {
		return "registry"
	}
	return "http"
}

func TestARefusalSaysWhatToChange(t *testing.T) {
	for name, c := range map[string]struct {
		p         policy.Policy
		kind, url string
		want      string
	}{
		"a private host": {
			policy.Default(), "http", "http://10.1.2.3:8080/a.qcow2",
			"10.1.2.3 is a private address: change spec.url to a public host, or have a prefix such as http://10.1.2.3:8080/ listed in allowedSources of the ConfigMap sync-operator-policy",
		},
		"a service": {
			policy.Default(), "s3", "https://minio.storage.svc/labs/a",
			"minio.storage.svc is a name inside the cluster: change spec.url to a public host, or have a prefix such as https://minio.storage.svc/ listed in allowedSources of the ConfigMap sync-operator-policy",
		},
		"an IPv6 address": {
			policy.Default(), "http", "http://[fd00:0::1]/a",
			"fd00::1 is an IPv6 address outside 2000::/3, so not a public one: change spec.url to a public host, or have a prefix such as http://[fd00::1]/ listed in allowedSources of the ConfigMap sync-operator-policy",
		},
		"what no prefix covers": {
			listed(t, "https://images.example.com/labs"), "http", "https://quay.io/a?X-Amz-Signature=secret",
			"no prefix in allowedSources of the ConfigMap sync-operator-policy covers it: change spec.url, or have a prefix such as https://quay.io/ listed there",
		},
		"what is not clear": {
			policy.Default(), "http", "http://user:password@images.example.com/a",
			"spec.url has a user before its host (credentials belong into secretRef): change it, allowedSources cannot admit it as it is",
		},
		"an archive": {
			policy.Default(), "registry", "oci-archive:///a.tar",
			"oci-archive is a file in the pod that imports, and no public host: change spec.url to a public host, or have a prefix such as oci-archive:/// listed in allowedSources of the ConfigMap sync-operator-policy",
		},
	} {
		assert.Equal(t, c.want, c.p.RefusesSource(c.kind, c.url), name)
	}
}

func TestBlankDisksAreAlwaysAdmitted(t *testing.T) {
	assert.Empty(t, policy.Default().RefusesSource("blank", ""))
	assert.Empty(t, listed(t, "https://images.example.com/").RefusesSource("blank", ""))
}

func TestSourcesThatAreAdmitted(t *testing.T) {
	for _, raw := range public {
		assert.Empty(t, policy.Default().RefusesSource(typeOf(raw), raw), "%s, without a list", raw)
	}
	for prefix, covered := range coveredBy {
		for _, raw := range covered {
			assert.Empty(t, listed(t, "https://other.example.com/", prefix).RefusesSource(typeOf(raw), raw), "%s, with %s listed", raw, prefix)
		}
	}
}

func TestHostileSourcesAreRefused(t *testing.T) {
	require.GreaterOrEqual(t, len(hostile), 150)
	seen := map[string]bool{}
	for _, h := range hostile {
		assert.False(t, seen[h.url], "%q is there twice", h.url)
		seen[h.url] = true
		assert.NotEmpty(t, policy.Default().RefusesSource(typeOf(h.url), h.url), "%q: %s", h.url, h.trick)
		p := listed(t, "https://images.example.com/labs", "docker://quay.io/labs", "oci-archive:///images")
		assert.NotEmpty(t, p.RefusesSource(typeOf(h.url), h.url), "%q, with a list: %s", h.url, h.trick)
	}
}

func TestOutsideOfAPrefixIsRefused(t *testing.T) {
	for prefix, tricks := range outside {
		for _, h := range tricks {
			assert.NotEmpty(t, listed(t, prefix).RefusesSource(typeOf(h.url), h.url), "%q, with %s listed: %s", h.url, prefix, h.trick)
		}
	}
}

func TestTheSourceTypeHasItsSchemes(t *testing.T) {
	p := listed(t, "https://images.example.com/", "docker://quay.io/", "oci-archive:///")
	for _, c := range []struct{ kind, url string }{
		{"http", "docker://quay.io/labs/a:1"}, {"s3", "docker://quay.io/labs/a:1"}, {"registry", "https://images.example.com/a"},
		{"http", "oci-archive:///a"}, {"", "https://images.example.com/a"}, {"torrent", "https://images.example.com/a"}, {"HTTP", "https://images.example.com/a"},
	} {
		assert.NotEmpty(t, p.RefusesSource(c.kind, c.url), "%s %s", c.kind, c.url)
	}
}

// addressOf is the IP address that a URL names for the standard library, if it names one.
func addressOf(raw string) (addr netip.Addr, isAddress bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, err = netip.ParseAddr(u.Hostname())
	return addr, err == nil
}

// private asks the standard library, which knows less than the policy.
func private(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified()
}

// FuzzSources looks for a URL that passes and should not: one that the standard library reads in another way.
func FuzzSources(f *testing.F) {
	for _, h := range hostile {
		f.Add(typeOf(h.url), h.url, "https://images.example.com/labs")
	}
	for prefix, tricks := range outside {
		for _, h := range tricks {
			f.Add(typeOf(h.url), h.url, prefix)
		}
	}
	for _, raw := range public {
		f.Add(typeOf(raw), raw, raw)
	}
	f.Fuzz(func(t *testing.T, kind, raw, prefix string) {
		why := policy.Default().RefusesSource(kind, raw)
		if why == "" && kind != "blank" {
			mustBePublic(t, kind, raw)
		}
		if strings.ContainsFunc(why, func(r rune) bool { return r < ' ' }) || len(why) > 1024 {
			t.Fatalf("%q is refused with %q", raw, why)
		}
		source, wrong := policy.ParseSource(prefix)
		if wrong != "" || kind == "blank" {
			return
		}
		p := policy.Policy{AllowedSources: []policy.Source{source}}
		if p.RefusesSource(kind, raw) == "" {
			mustBeUnder(t, prefix, raw)
		}
	})
}

func mustBePublic(t *testing.T, kind, raw string) {
	t.Helper()
	addr, is := addressOf(raw)
	if is && private(addr) {
		t.Fatalf("%q is admitted", raw)
	}
	u, err := url.Parse(raw)
	if kind == "registry" {
		return // an image without a host has its name there
	}
	if err != nil || u.User != nil || u.Hostname() == "" || !strings.Contains(u.Hostname(), ".") && !is {
		t.Fatalf("%q is admitted, and is %+v (%v)", raw, u, err)
	}
}

// mustBeUnder compares by the standard library: no host but the prefix's, and no path that it leaves.
func mustBeUnder(t *testing.T, prefix, raw string) {
	t.Helper()
	if !strings.HasPrefix(raw, "http") {
		return
	}
	want, wantErr := url.Parse(prefix)
	got, err := url.Parse(raw)
	if wantErr != nil || err != nil || got.Scheme != want.Scheme {
		t.Fatalf("%q is admitted by %q (%v, %v)", raw, prefix, wantErr, err)
	}
	host := func(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }
	a, aErr := netip.ParseAddr(host(got))
	b, bErr := netip.ParseAddr(host(want))
	if host(got) != host(want) && (aErr != nil || bErr != nil || a != b) {
		t.Fatalf("%q is admitted by %q, another host", raw, prefix)
	}
	under := strings.TrimSuffix(want.Path, "/") + "/"
	if path := got.JoinPath().Path + "/"; !strings.HasPrefix(path, under) && !strings.HasPrefix(got.Path+"/", under) {
		t.Fatalf("%q is admitted by %q, another path", raw, prefix)
	}
}

// aURL draws one of parts that like to be mistaken for one another.
func aURL(t *rapid.T) string {
	draw := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	raw := draw("http", "https") + "://" + draw("", "", "a@", "b.example.com@") +
		draw("a.example.com", "A.example.com.", "b.example.com", "10.0.0.1", "[::1]", "127.1", "minio.storage.svc", "localhost", "8.8.8.8") +
		draw("", "", ":80", ":443", ":8080", ":")
	for range rapid.IntRange(0, 4).Draw(t, "depth") {
		raw += "/" + draw("labs", "labs-evil", "x", "..", ".", "%2e%2e", "%6cabs", "labs%2fx", "", "%252e%252e")
	}
	return raw + draw("", "/", "?a=/../b", "#b")
}

// TestPrefixesOnlyAdmit says what a list is: the more of it, the more is admitted, in whatever order, and a longer prefix
// admits no more than a shorter one.
func TestPrefixesOnlyAdmit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := aURL(t)
		var list []policy.Source
		for range rapid.IntRange(1, 4).Draw(t, "prefixes") {
			if source, wrong := policy.ParseSource(aURL(t)); wrong == "" {
				list = append(list, source)
			}
		}
		if len(list) == 0 {
			return
		}
		admits := func(sources ...policy.Source) bool {
			return policy.Policy{AllowedSources: sources}.RefusesSource("http", raw) == ""
		}
		all, one := admits(list...), slices.ContainsFunc(list, func(s policy.Source) bool { return admits(s) })
		if all != one {
			t.Fatalf("%q: one of %v admits it: %v, all together: %v", raw, list, one, all)
		}
		longer, wrong := policy.ParseSource(strings.TrimSuffix(list[0].String(), "/") + "/deeper")
		if wrong == "" && admits(longer) && !admits(list[0]) {
			t.Fatalf("%q: admitted by %s, not by %s", raw, longer, list[0])
		}
		if own, wrong := policy.ParseSource(raw); wrong == "" && strings.Count(raw, "/") > 2 && !admits(own) {
			t.Fatalf("%q is not covered by itself", raw)
		}
	})
}

// TestNoNotationOfAPrivateAddressIsAdmitted writes private addresses in all the ways that resolvers take.
func TestNoNotationOfAPrivateAddressIsAdmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		network := rapid.SampledFrom([]string{"10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "0.0.0.0/8", "224.0.0.0/3"}).Draw(t, "network")
		prefix := netip.MustParsePrefix(network)
		random := rapid.Uint32().Draw(t, "host") & (1<<(32-prefix.Bits()) - 1)
		host := notation(t, binary.BigEndian.Uint32(prefix.Addr().AsSlice())|random)
		if why := policy.Default().RefusesSource("http", "http://"+host+"/a"); why == "" {
			t.Fatalf("%s is admitted", host)
		}
	})
}
