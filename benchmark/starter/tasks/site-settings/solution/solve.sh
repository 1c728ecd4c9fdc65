#!/bin/bash
# Reference solution: edits the settings in place, so that whatever else stands in the file stays there.
set -euo pipefail
instance=$(sed -n '1s/^# instance: *//p' /app/data/services.csv)
port=$(awk -F, '$1 == "gateway" { print $2 }' /app/data/services.csv)
sed -i -e "/^\[site\]/,/^\[/ { s/^instance =.*/instance = $instance/; s/^listen =.*/listen = $port/ }" \
       -e '/^\[log\]/,$ s/^level =.*/level = warning/' /app/site.ini
python3 - "$instance" <<'PYTHON'
import csv
import json
import sys

with open("/app/data/services.csv") as source:
    services = list(csv.DictReader(line for line in source if not line.startswith("#")))
summary = {
    "instance": sys.argv[1],
    "running": sorted(service["name"] for service in services if service["state"] == "on"),
    "services": len(services),
}
with open("/app/summary.json", "w") as out:
    json.dump(summary, out, indent=2)
PYTHON
