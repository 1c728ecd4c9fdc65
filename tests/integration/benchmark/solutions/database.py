"""The rows in a database in memory, the choice as a query."""

import csv
import datetime
import decimal
import json
import sqlite3
import sys


def load(db, table, path, form):
    kept = [(n, line) for n, line in enumerate(open(path, newline=""), 1) if line.strip() and not line.startswith("#")]
    numbers = [n for n, _ in kept]
    for number, record in zip(numbers[1:], list(csv.reader(line for _, line in kept))[1:]):
        try:
            day = datetime.datetime.strptime(record[1], form).date().toordinal()
            amount = decimal.Decimal(record[2].replace(",", "")).quantize(decimal.Decimal("0.01"))
        except (ValueError, decimal.InvalidOperation, IndexError):
            print(f"{path}:{number} is not readable", file=sys.stderr)
            sys.exit(2)
        db.execute(f"insert into {table} values (?, ?, ?, ?, ?)", (record[0], day, str(amount), record[3], record[4].lower()))


rules = dict(
    (part.strip() for part in line.split("=", 1)) for line in open("/app/rules.conf") if "=" in line and not line.startswith("#")
)
db = sqlite3.connect(":memory:")
for table in ("ledger", "statement"):
    db.execute(f"create table {table} (key text, day integer, amount text, currency text, words text)")
load(db, "ledger", sys.argv[1], "%Y-%m-%d")
load(db, "statement", sys.argv[2], "%d.%m.%Y")
duplicates = [key for (key,) in db.execute("select key from ledger group by key having count(*) > 1 order by key")]
db.execute("delete from ledger where rowid not in (select min(rowid) from ledger group by key)")
skipped = 0
if rules["currency"]:
    for table in ("ledger", "statement"):
        skipped += db.execute(f"delete from {table} where currency <> ?", (rules["currency"],)).rowcount
totals = {t: sum((decimal.Decimal(a) for (a,) in db.execute(f"select amount from {t}")), decimal.Decimal("0.00"))
          for t in ("ledger", "statement")}  # fmt: skip
totals["difference"] = totals["ledger"] - totals["statement"]
matched, missing = [], []
for key, day, amount, currency, words in db.execute("select * from ledger order by day, key").fetchall():
    found = db.execute(
        "select rowid, key from statement where amount = ? and currency = ? and abs(day - ?) <= ?"
        " order by (? <> '' and instr(words, ?) > 0) desc, abs(day - ?), cast(key as integer) limit 1",
        (amount, currency, day, int(rules["tolerance_days"]), words, words, day),
    ).fetchone()
    if found is None:
        missing.append(key)
        continue
    db.execute("delete from statement where rowid = ?", found[:1])
    matched.append({"id": key, "line": int(found[1]), "amount": amount})
left = sorted(int(key) for (key,) in db.execute("select key from statement"))
print(json.dumps({
    "instance": rules["instance"], "matched": matched, "missing": sorted(missing), "unexpected": left, "duplicates": duplicates,
    "skipped": skipped, "totals": {name: format(amount, ".2f") for name, amount in totals.items()},
}))  # fmt: skip
sys.exit(0 if not missing and not left else 1)
