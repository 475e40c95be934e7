#!/usr/bin/env bash
# Prints the folder that holds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok.
#
# KUBEBUILDER_ASSETS wins when it is set. Otherwise the folder is built from e2e/controlplane (about five
# minutes when Go's build cache is cold, seconds when it is warm) and kept outside the tree, by version and by a
# hash of everything that goes into it. Progress goes to standard error; standard output is the folder alone.
set -euo pipefail

if [[ -n "${KUBEBUILDER_ASSETS:-}" ]]; then
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi

src="$(cd "$(dirname "${BASH_SOURCE[0]}")/../e2e/controlplane" && pwd)"
cd "$src"
export GOWORK=off CGO_ENABLED=0 GOFLAGS=

version=""
while read -r module at _; do
  if [[ "$module" == k8s.io/kubernetes ]]; then version="$at"; fi
done <go.mod
if [[ ! "$version" =~ ^v([0-9]+)\.([0-9]+)\. ]]; then
  echo "test-env.sh: no version of k8s.io/kubernetes in $src/go.mod" >&2
  exit 1
fi
major="${BASH_REMATCH[1]}" minor="${BASH_REMATCH[2]}"

hash="$({ go env GOVERSION GOOS GOARCH; sha256sum go.mod go.sum cmd/*/*.go "../../scripts/test-env.sh"; } | sha256sum | cut -c1-12)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/open-terrain/controlplane"
assets="$cache/$version-$hash"
if [[ -x "$assets/kubectl" ]]; then
  echo "$assets"
  exit 0
fi

mkdir -p "$cache"
# One build at a time. Without flock two callers would both build; the rename below keeps that correct.
if command -v flock >/dev/null; then
  exec 9>"$cache/.lock"
  flock 9
  if [[ -x "$assets/kubectl" ]]; then
    echo "$assets"
    exit 0
  fi
fi

echo "test-env.sh: building the control plane $version into $assets (about 5 minutes the first time)" >&2
tmp="$(mktemp -d "$cache/.build-XXXXXX")"
trap 'rm -rf "$tmp"' EXIT
pkg=k8s.io/component-base/version
go build -trimpath -o "$tmp/controlplane" \
  -ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor" \
  ./cmd/controlplane >&2
for program in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok; do
  ln -s controlplane "$tmp/$program"
done
chmod 755 "$tmp"
# A folder cannot be renamed over one that is not empty: whoever finished first has won.
if ! mv -T "$tmp" "$assets" 2>/dev/null && [[ ! -x "$assets/kubectl" ]]; then
  echo "test-env.sh: cannot move the build to $assets" >&2
  exit 1
fi
echo "test-env.sh: built in ${SECONDS} s" >&2
echo "$assets"
