#!/usr/bin/env bash
# Fails if the working tree differs from HEAD or holds untracked files, and names them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
status="$(git status --porcelain --untracked-files=all)"
if [[ -n "$status" ]]; then
  echo "check-clean.sh: the tree is dirty; commit what make verify wrote, or remove what does not belong:" >&2
  echo "$status" >&2
  git --no-pager diff --stat HEAD >&2
  exit 1
fi
