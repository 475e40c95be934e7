#!/usr/bin/env bash
# Runs each fuzz target of each module for FUZZTIME (default 20s).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off
for mod in $(scripts/modules.sh); do
  while IFS=: read -r file line; do
    target="${line#func }"
    echo "fuzz $file ${target%%(*}"
    (cd "$mod" && go test "./$(dirname "$file")" -run '^$' -fuzz "^${target%%(*}\$" -fuzztime "${FUZZTIME:-20s}")
  done < <(cd "$mod" && grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*(' . || true)
done
