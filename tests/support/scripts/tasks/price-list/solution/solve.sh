#!/bin/bash
set -euo pipefail
cat > /app/export.py <<'PYTHON'
# amounts in cents
import csv
import json
import os
from decimal import Decimal

with open("/app/prices.csv", newline="") as source:
    rows = [row for row in csv.DictReader(source) if row["category"] != "internal"]
items = sorted(({"name": r["name"], "price": int(Decimal(r["price"]) * 100)} for r in rows), key=lambda item: item["name"])
os.makedirs("/app/out", exist_ok=True)
with open("/app/out/prices.json", "w") as out:
    json.dump(items, out, indent=2)
with open("/app/out/count.txt", "w") as out:
    out.write(f"{len(items)}\n")
PYTHON
python3 /app/export.py
rm -f /app/public/publish.lock
/app/publish.sh
