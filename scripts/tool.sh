#!/usr/bin/env bash
# Runs a tool of scripts/tools/go.mod: scripts/tool.sh NAME [ARGUMENT...]
#
# The tool is built once and kept outside the tree, by a hash of its pinned dependencies and of the Go version:
# `go tool` would look through the whole module graph at each call. It runs in the caller's folder.
set -euo pipefail

name="${1:?usage: tool.sh NAME [ARGUMENT...]}"
shift
src="$(cd "$(dirname "${BASH_SOURCE[0]}")/tools" && pwd)"

hash="$(cd "$src" && { GOWORK=off go env GOVERSION GOOS GOARCH; cat go.mod go.sum; } | sha256sum | cut -c1-12)"
bin="${XDG_CACHE_HOME:-$HOME/.cache}/open-terrain/tools/$hash"
if [[ ! -x "$bin/$name" ]]; then
  package="$(cd "$src" && GOWORK=off GOFLAGS= go list tool | grep "/$name\$")" || {
    echo "tool.sh: scripts/tools/go.mod has no tool $name" >&2
    exit 1
  }
  echo "tool.sh: building $name (minutes the first time)" >&2
  mkdir -p "$bin"
  # Built beside its place and renamed, so that two callers at once never run half a file.
  building="$(mktemp -d "$bin/.build-XXXXXX")"
  trap 'rm -rf "$building"' EXIT
  (cd "$src" && GOWORK=off GOFLAGS= go build -trimpath -ldflags='-s -w' -o "$building/$name" "$package") >&2
  mv "$building/$name" "$bin/$name"
  rm -rf "$building"
  trap - EXIT
fi
exec "$bin/$name" "$@"
