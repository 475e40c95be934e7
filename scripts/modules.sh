#!/usr/bin/env bash
# Prints the modules of the workspace, one a line, as go.work lists them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sed -n 's|^[[:space:]]*\./||p' go.work
