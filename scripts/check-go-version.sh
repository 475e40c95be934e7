#!/usr/bin/env bash
# Every go.mod and go.work names the same language version, and .go-version a release of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
want="$(sed -n 's/^go //p' apis/go.mod)"
for file in go.work $(git ls-files -co --exclude-standard '*go.mod'); do
  got="$(sed -n 's/^go //p' "$file")"
  if [[ "$got" != "$want" ]]; then
    echo "check-go-version.sh: $file says go $got, apis/go.mod says go $want" >&2
    exit 1
  fi
  if grep -q '^toolchain ' "$file"; then
    echo "check-go-version.sh: $file has a toolchain line; .go-version decides" >&2
    exit 1
  fi
done
if [[ "$(cut -d. -f1,2 .go-version)" != "${want%.*}" ]]; then
  echo "check-go-version.sh: .go-version is $(cat .go-version), but the modules say go $want" >&2
  exit 1
fi
