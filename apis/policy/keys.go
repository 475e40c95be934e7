package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxConcurrency = 1000
	maxRetries     = 100
	maxDuration    = 365 * 24 * time.Hour
	maxSources     = 1000
)

// reader puts a value into the policy, or says what it should have been.
type reader func(p *Policy, value string) (want string)

var readers = map[string]reader{
	KeyConcurrency:          integer(func(p *Policy) *int { return &p.Concurrency }, maxConcurrency),
	KeyRetryLimit:           integer(func(p *Policy) *int { return &p.RetryLimit }, maxRetries),
	KeyWorkspaceConcurrency: integer(func(p *Policy) *int { return &p.WorkspaceConcurrency }, maxConcurrency),
	KeyRetryBackoff:         duration(func(p *Policy) *time.Duration { return &p.RetryBackoff }, time.Millisecond),
	KeyAttemptTimeout:       duration(func(p *Policy) *time.Duration { return &p.AttemptTimeout }, time.Second),
	KeyStallTimeout:         duration(func(p *Policy) *time.Duration { return &p.StallTimeout }, time.Second),
	KeyUnusedImageTTL:       duration(func(p *Policy) *time.Duration { return &p.UnusedImageTTL }, 0),
	KeyAllowedSources:       readSources,
	KeyDefaultDiskSize:      readSize,
	KeyDefaultStorageClass:  objectName(func(p *Policy) *string { return &p.DefaultStorageClass }),
	KeyDefaultSnapshotClass: objectName(func(p *Policy) *string { return &p.DefaultSnapshotClass }),
	KeyDefaultSecretRef:     objectName(func(p *Policy) *string { return &p.DefaultSecretRef }),
}

func integer(field func(*Policy) *int, most int) reader {
	return func(p *Policy, value string) string {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > most {
			return fmt.Sprintf("a whole number from 0 to %d", most)
		}
		*field(p) = n
		return ""
	}
}

func duration(field func(*Policy) *time.Duration, least time.Duration) reader {
	return func(p *Policy, value string) string {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > maxDuration {
			return fmt.Sprintf("a duration such as 90s, 5m or 2h, from %s to %s", least, maxDuration)
		}
		*field(p) = d
		return ""
	}
}

func objectName(field func(*Policy) *string) reader {
	return func(p *Policy, value string) string {
		if value != "" && len(validation.IsDNS1123Subdomain(value)) > 0 {
			return "the name of an object: lower-case letters, digits, '-' and '.'"
		}
		*field(p) = value
		return ""
	}
}

// sizes have no exponent: resource.ParseQuantity works on 1e-2147483647 for minutes.
var sizes = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,9})?([KMGT]i|[kMGT])?$`)

var maxSize = resource.MustParse("64Ti")

func readSize(p *Policy, value string) string {
	const want = "a size such as 24Gi, above 0 and at most 64Ti"
	if value == "" {
		return ""
	}
	if !sizes.MatchString(value) {
		return want
	}
	size, err := resource.ParseQuantity(value)
	if err != nil || size.Sign() <= 0 || size.Cmp(maxSize) > 0 {
		return want
	}
	p.DefaultDiskSize = size
	return ""
}

// readSources takes one URL prefix a line; empty lines and those that begin with # count for nothing.
func readSources(p *Policy, value string) string {
	const want = "a list of URL prefixes with scheme and host, one a line, such as https://images.example.com/labs/"
	var sources []Source
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		source, wrong := ParseSource(line)
		if wrong != "" {
			return fmt.Sprintf("%s: %s %s", want, named(line), wrong)
		}
		sources = append(sources, source)
	}
	if len(sources) > maxSources {
		return fmt.Sprintf("a list of at most %d URL prefixes", maxSources)
	}
	p.AllowedSources = sources
	return ""
}

// named is a line for an event; of one that may hold a password there is nothing to see.
func named(line string) string {
	if strings.Contains(line, "@") {
		return "a line"
	}
	return strconv.Quote(shorten(line))
}
