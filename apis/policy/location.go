package policy

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	schemeHTTP    = "http"
	schemeHTTPS   = "https"
	schemeDocker  = "docker"
	schemeArchive = "oci-archive"
)

// schemesOf are the schemes that go with a sourceType.
var schemesOf = map[string][]string{
	"http": {schemeHTTP, schemeHTTPS}, "s3": {schemeHTTP, schemeHTTPS}, "registry": {schemeDocker, schemeArchive},
}

var defaultPorts = map[string]string{schemeHTTP: "80", schemeHTTPS: "443", schemeDocker: "443"}

// location is a URL taken apart: what is left has one spelling, so that its parts may be compared.
type location struct {
	scheme string
	host   string // lower-case, without a final dot; an IP address in its one canonical form
	port   string // never empty, but where there is no host
	path   []string
}

// name is the host, for people.
func (l location) name() string {
	if l.scheme == schemeArchive {
		return schemeArchive
	}
	return l.host
}

// origin is the widest prefix that covers the location.
func (l location) origin() string {
	host := l.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if l.port != defaultPorts[l.scheme] {
		host += ":" + l.port
	}
	return l.scheme + "://" + host + "/"
}

// locate takes the URL of an image apart, or says what is not clear about it.
func locate(sourceType, raw string) (at location, wrong string) {
	if wrong := badText(raw); wrong != "" {
		return location{}, wrong
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || !slices.Contains(schemesOf[sourceType], scheme) {
		return location{}, "has a scheme that does not go with the sourceType"
	}
	switch scheme {
	case schemeDocker:
		return imageLocation(rest)
	case schemeArchive:
		return archiveLocation(rest)
	}
	return webLocation(scheme, rest)
}

// badText looks for what has no place anywhere in a URL, or what programs disagree about.
func badText(raw string) (wrong string) {
	for _, r := range raw {
		switch {
		case r <= ' ' || r == 0x7f:
			return "holds a space or a control character"
		case r > 0x7f:
			return "holds a letter beyond ASCII: write it percent-encoded, and a host as xn--"
		case r == '\\':
			return "holds a backslash"
		case r == '#':
			return "holds a fragment, which no server is sent"
		}
	}
	return ""
}

// webLocation reads what stands behind http:// or https://.
func webLocation(scheme, rest string) (at location, wrong string) {
	end := strings.IndexAny(rest, "/?")
	if end < 0 || rest[end] != '/' {
		return location{}, "has no path behind its host"
	}
	at.scheme = scheme
	if at.host, at.port, wrong = authority(scheme, rest[:end]); wrong != "" {
		return location{}, wrong
	}
	path, _, _ := strings.Cut(rest[end+1:], "?")
	if at.path, wrong = segments(path); wrong != "" {
		return location{}, wrong
	}
	return at, ""
}

// authority reads host and port.
func authority(scheme, text string) (host, port, wrong string) {
	if strings.Contains(text, "@") {
		return "", "", "has a user before its host (credentials belong into secretRef)"
	}
	port = defaultPorts[scheme]
	end := strings.Index(text, "]") + 1 // the colons of an IPv6 address are in brackets
	if colon := strings.Index(text[end:], ":"); colon >= 0 {
		text, port = text[:end+colon], text[end+colon+1:]
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port != strconv.Itoa(n) {
			return "", "", "has a port that is not a number from 1 to 65535"
		}
	}
	host, wrong = canonicalHost(text)
	return host, port, wrong
}

const label = `[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?`

var (
	hostName = regexp.MustCompile(`^` + label + `(\.` + label + `)*\.?$`)
	// numeric is the last label of what a resolver may take for an IPv4 address, in whatever notation.
	numeric = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)
)

const maxHost = 253

// canonicalHost gives a host its one spelling. Of the many ways to write an IP address only the usual one is taken.
func canonicalHost(text string) (host, wrong string) {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		addr, err := netip.ParseAddr(text[1 : len(text)-1])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "has no plain IPv6 address between its brackets"
		}
		return addr.String(), ""
	}
	host = strings.ToLower(text)
	switch {
	case !hostName.MatchString(host) || len(host) > maxHost:
		return "", "has no proper name of a host"
	case !numeric.MatchString(host):
		return strings.TrimSuffix(host, "."), ""
	}
	if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() {
		return "", "has an IP address in an unusual notation: write four decimal numbers"
	}
	return host, ""
}

// segments takes a path apart and decodes it. A path that somebody may read as another one is none.
func segments(path string) (parts []string, wrong string) {
	for part := range strings.SplitSeq(path, "/") {
		decoded, err := url.PathUnescape(part)
		if err != nil {
			return nil, "has a broken percent-encoding in its path"
		}
		if slippery(part) {
			return nil, "has a path with dots, slashes or control characters that can be read in several ways"
		}
		parts = append(parts, decoded)
	}
	return parts, ""
}

// alike are characters that compatibility normalization makes dots and slashes.
const alike = "\u2024\u2025\u2026\u2044\u2215\ufe52\uff0e\uff0f\uff3c\uff61"

// slippery says that the segment leaves its folder, or may do so for a program that decodes it once more, takes what
// follows a semicolon off, or knows other dots and slashes.
func slippery(segment string) bool {
	for range 8 {
		bare, _, _ := strings.Cut(segment, ";")
		dots := bare != "" && strings.Trim(bare, ". ") == ""
		if dots || strings.ContainsAny(segment, `/\`+alike) || !utf8.ValidString(segment) || strings.ContainsFunc(segment, control) {
			return true
		}
		decoded, err := url.PathUnescape(segment)
		if err != nil || decoded == segment {
			return false
		}
		segment = decoded
	}
	return true
}

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
