package policy

import (
	"fmt"
	"slices"
	"strings"
)

// sourcesKey is where people find the key.
const sourcesKey = KeyAllowedSources + " of the ConfigMap sync-operator-policy"

// Source is a URL prefix of allowedSources.
type Source struct {
	text string
	at   location
}

// String is the prefix as it was written.
func (s Source) String() string { return s.text }

// ParseSource reads a prefix, or says what is wrong with it.
func ParseSource(text string) (source Source, wrong string) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return Source{}, "has no scheme"
	}
	if wrong := badText(text); wrong != "" {
		return Source{}, wrong
	}
	if strings.Contains(rest, "?") {
		return Source{}, "has a query, which is not compared"
	}
	at, wrong := location{}, ""
	switch scheme {
	case schemeHTTP, schemeHTTPS:
		at, wrong = webLocation(scheme, withPath(rest))
	case schemeDocker:
		at, wrong = registryPrefix(rest)
	case schemeArchive:
		at, wrong = archiveLocation(withPath(rest))
	default:
		wrong = "has none of the schemes http, https, docker and oci-archive"
	}
	if wrong != "" {
		return Source{}, wrong
	}
	for len(at.path) > 0 && at.path[len(at.path)-1] == "" {
		at.path = at.path[:len(at.path)-1] // a final slash: /labs/ is /labs
	}
	return Source{text: text, at: at}, ""
}

// withPath lets a prefix end behind its host.
func withPath(rest string) string {
	if strings.Contains(rest, "/") {
		return rest
	}
	return rest + "/"
}

// covers says that the location is the prefix, or lies under it: the parts are compared, and the path by whole segments.
func (s Source) covers(at location) bool {
	return s.at.scheme == at.scheme && s.at.host == at.host && s.at.port == at.port &&
		len(s.at.path) <= len(at.path) && slices.Equal(s.at.path, at.path[:len(s.at.path)])
}

// RefusesSource says why the policy does not admit an image's source, in one sentence that names what to change; it is
// empty for a source that is admitted. sourceType and rawURL are those of the image's spec.
//
// What is not clear is refused, whatever is listed: several programs read the URL, and each may read it in another way.
// What a listed prefix covers is admitted. Without a list, any public host is. Only the text is looked at: a public
// name that resolves to a private address, and a server that redirects to one, are for a NetworkPolicy to stop.
func (p Policy) RefusesSource(sourceType, rawURL string) (why string) {
	if sourceType == "blank" {
		return "" // nothing is downloaded
	}
	at, wrong := locate(sourceType, rawURL)
	if wrong != "" {
		return fmt.Sprintf("spec.url %s: change it, %s cannot admit it as it is", wrong, KeyAllowedSources)
	}
	for _, source := range p.AllowedSources {
		if source.covers(at) {
			return ""
		}
	}
	if len(p.AllowedSources) > 0 {
		return fmt.Sprintf("no prefix in %s covers it: change spec.url, or have a prefix such as %s listed there", sourcesKey, at.origin())
	}
	if what := inside(at); what != "" {
		return fmt.Sprintf("%s is %s: change spec.url to a public host, or have a prefix such as %s listed in %s",
			at.name(), what, at.origin(), sourcesKey)
	}
	return ""
}
