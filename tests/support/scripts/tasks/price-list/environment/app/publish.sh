#!/bin/bash
# Copies the exported list to the folder that the shop program reads.
set -eu
if [ -e /app/public/publish.lock ]; then
  echo "publish.sh: locked by another run (/app/public/publish.lock)" >&2
  exit 3
fi
mkdir -p /app/public
cp /app/out/prices.json /app/public/prices.json
