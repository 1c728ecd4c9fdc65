#!/bin/bash
# Reference solution. Settings are edited in place, so that whatever else stands in the file stays there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
instance=$(sed -n '1s/^# instance: *//p' /app/data/ledger.csv)
sed -i -e "s/^instance =.*/instance = $instance/" -e 's/^tolerance_days =.*/tolerance_days = 3/' \
       -e 's/^currency =.*/currency = EUR/' /app/rules.conf
install -m 755 "$here/reconcile.py" /app/reconcile.py
status=0
python3 /app/reconcile.py /app/data/ledger.csv /app/data/statement.csv > /app/report.json || status=$?
test "$status" -le 1
