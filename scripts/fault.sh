#!/usr/bin/env bash
# Runs the fault campaign and shows a table: scripts/fault.sh
# OT_PLANS=all tries every plan, and OT_PLANS=N so many of each story, instead of those that are likely to differ.
# TEST_ARGS goes to go test, as in TEST_ARGS='-run TestStories/changes/update'. docs/testing.md has the other variables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export OT_PLANS="${OT_PLANS:-distinct}" OT_SEED="${OT_SEED:-$(date +%s)}" OT_TABLE
OT_TABLE="$(mktemp)"
trap 'rm -f "$OT_TABLE"' EXIT
read -ra more <<<"${TEST_ARGS:-}"
code=0
scripts/with-assets.sh e2e go test -p 1 ./fault ./vmfault ./wsfault -count=1 -v -timeout 12h "${more[@]}" || code=$?
cat "$OT_TABLE"
exit "$code"
