#!/bin/bash
# publish.sh YEAR... or publish.sh --all: puts archives into the public folder.
set -eu
mkdir -p /app/public
if [ "${1:-}" = --all ]; then set -- $(ls /app/archive | sed -n 's/\.log\.gz$//p'); fi
[ $# -gt 0 ] || { echo "publish.sh: which year?" >&2; exit 2; }
for year in "$@"; do cp "/app/archive/$year.log.gz" /app/public/; done
