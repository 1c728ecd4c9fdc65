#!/usr/bin/env bash
# Rewrites constraints.txt: every dependency of every extra, pinned, with hashes, without download addresses.
set -euo pipefail
cd "$(dirname "$0")/.."
uv pip compile pyproject.toml --all-extras --group dev --generate-hashes --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --python-version 3.11 --universal -q -o constraints.txt
