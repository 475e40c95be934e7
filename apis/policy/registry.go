package policy

import (
	"regexp"
	"strings"
)

// dockerHub is the registry of references that name none.
const dockerHub = "docker.io"

const component = `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`

var (
	repository = regexp.MustCompile(`^` + component + `(/` + component + `)*$`)
	imageTag   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digest     = regexp.MustCompile(`^[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-f]{32,}$`)
	// archive is a file, and an image in it may follow.
	archive = regexp.MustCompile(`^/*([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*)?/?(:[A-Za-z0-9_][A-Za-z0-9_./:@-]*)?$`)
)

// imageLocation reads a reference as container tools do: host/name:tag@digest, and Docker Hub's without a host.
func imageLocation(rest string) (at location, wrong string) {
	const unclear = "is not a reference to a container image: write docker://host/name:tag"
	name, proper := bareName(rest)
	host, path, _ := strings.Cut(name, "/")
	if !namesHost(host) {
		host, path = dockerHub, name
	}
	if !proper || !repository.MatchString(path) {
		return location{}, unclear // also docker://quay.io, an image of Docker Hub to some, and nobody means that
	}
	if at, wrong = registryLocation(host, path); at.host == dockerHub && len(at.path) == 1 {
		at.path = []string{"library", path} // where Docker Hub keeps images without a folder
	}
	return at, wrong
}

// bareName takes tag and digest off a reference, and says whether they are such.
func bareName(reference string) (name string, proper bool) {
	name, sum, pinned := strings.Cut(reference, "@")
	proper = !pinned || digest.MatchString(sum)
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		return name[:colon], proper && imageTag.MatchString(name[colon+1:])
	}
	return name, proper
}

// registryPrefix reads a prefix: the host of a registry, and folders or a name in it.
func registryPrefix(rest string) (at location, wrong string) {
	host, path, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	switch {
	case !namesHost(host):
		return location{}, "does not name the registry's host (Docker Hub is docker.io)"
	case path != "" && !repository.MatchString(path):
		return location{}, "has a tag, a digest or something else behind its host that is no folder or name of images"
	}
	return registryLocation(host, path)
}

func registryLocation(host, path string) (at location, wrong string) {
	at.scheme = schemeDocker
	if at.host, at.port, wrong = authority(schemeDocker, host); wrong != "" {
		return location{}, wrong
	}
	if at.host == "index."+dockerHub {
		at.host = dockerHub
	}
	if path != "" {
		at.path = strings.Split(path, "/")
	}
	return at, ""
}

// namesHost says that container tools take the first part of a reference for a host.
func namesHost(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost" || part != strings.ToLower(part)
}

// archiveLocation reads the path of a file in the pod that imports.
func archiveLocation(rest string) (at location, wrong string) {
	if !archive.MatchString(rest) {
		return location{}, "is not a plain path of an archive"
	}
	path, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), ":")
	if at.path, wrong = segments(path); wrong != "" {
		return location{}, wrong
	}
	at.scheme = schemeArchive
	return at, ""
}
