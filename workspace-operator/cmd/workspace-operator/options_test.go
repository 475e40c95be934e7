package main

import (
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsSayWhatToChange(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"the defaults":                {nil, ""},
		"an argument":                 {[]string{"run"}, "no arguments: run"},
		"no namespace":                {[]string{"--namespace="}, "--namespace must not be empty"},
		"no policy namespace":         {[]string{"--policy-namespace="}, "--policy-namespace must not be empty"},
		"no image namespace":          {[]string{"--image-namespace="}, "--image-namespace must not be empty"},
		"no workers":                  {[]string{"--workers=0"}, "--workers must be 1 or more"},
		"a negative interval":         {[]string{"--status-interval=-1s"}, "--status-interval must not be negative"},
		"a negative debounce":         {[]string{"--trouble-debounce=-1s"}, "--trouble-debounce must not be negative"},
		"no such level":               {[]string{"--pod-security=lax"}, "--pod-security must be"},
		"no DNS labels":               {[]string{"--dns-labels="}, "must not be empty"},
		"a DNS name":                  {[]string{"--dns-cidrs=169.254.20.10/32,dns"}, "--dns-cidrs must be CIDRs, such as 169.254.20.10/32: netip.ParsePrefix(\"dns\")"},
		"no further DNS":              {[]string{"--dns-cidrs="}, ""},
		"an address without a length": {[]string{"--metadata-cidrs=10.0.0.1"}, "--metadata-cidrs must be CIDRs"},
		"public profiles":             {[]string{"--pprof-bind-address=:6060"}, "--pprof-bind-address must be a loopback address"},
		"profiles on loopback":        {[]string{"--pprof-bind-address=127.0.0.1:6060"}, ""},
		"a deadline that is too long": {[]string{"--leader-elect-renew-deadline=20s"}, "--leader-elect-renew-deadline must be less than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var o options
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			o.bindFlags(flags)
			require.NoError(t, flags.Parse(c.args))
			err := o.validate(flags.Args())
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestLabelsAreReadFromAFlag(t *testing.T) {
	var o options
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.bindFlags(flags)
	require.NoError(t, flags.Parse([]string{"--dns-labels=app=dns, tier=node"}))
	assert.Equal(t, pairs{"app": "dns", "tier": "node"}, o.dns.labels)
	assert.Equal(t, "app=dns,tier=node", o.dns.labels.String())
	assert.ErrorContains(t, flags.Parse([]string{"--dns-labels=dns"}), "not key=value")
}

func TestNamespaceIsThatOfThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "ot")
	var o options
	o.bindFlags(flag.NewFlagSet("test", flag.ContinueOnError))
	assert.Equal(t, "ot", o.namespace)
}

func TestMetricsAreProtectedExceptOnLoopback(t *testing.T) {
	assert.True(t, metricsOptions(":8443").SecureServing)
	assert.NotNil(t, metricsOptions("0.0.0.0:8443").FilterProvider)
	assert.False(t, metricsOptions("127.0.0.1:0").SecureServing)
}
