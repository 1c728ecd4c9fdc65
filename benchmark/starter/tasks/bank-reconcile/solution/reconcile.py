"""Reconcile a ledger with a bank statement: python3 reconcile.py LEDGER STATEMENT"""

import csv
import json
import sys
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

RULES = "/app/rules.conf"


class BadRow(Exception):
    pass


class Row(NamedTuple):
    key: str
    day: date
    amount: Decimal
    currency: str
    text: str


def read_rules(path):
    rules = {}
    with open(path, encoding="utf-8") as source:
        for line in source:
            if "=" in line and not line.lstrip().startswith("#"):
                name, _, value = line.partition("=")
                rules[name.strip()] = value.strip()
    return rules


def read_rows(path, key, day, day_format, text):
    with open(path, encoding="utf-8", newline="") as source:
        lines = [(n, line) for n, line in enumerate(source, 1) if line.strip() and not line.startswith("#")]
    records = list(csv.reader(line for _, line in lines))
    header = records[0] if records else []
    rows = []
    for (number, _), record in zip(lines[1:], records[1:]):
        fields = dict(zip(header, record))
        try:
            amount = Decimal(fields["amount"].replace(",", ""))
            if not amount.is_finite():
                raise ValueError(amount)
            when = datetime.strptime(fields[day], day_format).date()
        except (KeyError, ValueError, InvalidOperation):
            raise BadRow(f"{path}:{number}: amount or date cannot be read") from None
        rows.append(Row(fields[key], when, amount, fields["currency"], fields[text]))
    return rows


def without_duplicates(rows):
    first, again = {}, set()
    for row in rows:
        if row.key in first:
            again.add(row.key)
        else:
            first[row.key] = row
    return list(first.values()), sorted(again)


def pair(entries, lines, tolerance):
    free, pairs, missing = list(lines), [], []
    for entry in sorted(entries, key=lambda e: (e.day, e.key)):
        matching = [
            line
            for line in free
            if (line.amount, line.currency) == (entry.amount, entry.currency) and abs((line.day - entry.day).days) <= tolerance
        ]

        def rank(line, entry=entry):
            named = entry.text != "" and entry.text.lower() in line.text.lower()
            return (not named, abs((line.day - entry.day).days), int(line.key))

        if matching:
            chosen = min(matching, key=rank)
            free.remove(chosen)
            pairs.append((entry, chosen))
        else:
            missing.append(entry.key)
    return pairs, sorted(missing), sorted(int(line.key) for line in free)


def money(amount):
    return f"{amount:.2f}"


def report(ledger, statement, rules):
    entries, duplicates = without_duplicates(read_rows(ledger, "id", "date", "%Y-%m-%d", "reference"))
    lines = read_rows(statement, "line", "booked", "%d.%m.%Y", "text")
    wanted = rules.get("currency", "")
    ours = [e for e in entries if wanted in ("", e.currency)]
    theirs = [line for line in lines if wanted in ("", line.currency)]
    pairs, missing, unexpected = pair(ours, theirs, int(rules.get("tolerance_days") or 0))
    booked, paid = sum((e.amount for e in ours), Decimal(0)), sum((line.amount for line in theirs), Decimal(0))
    return {
        "instance": rules.get("instance", ""),
        "matched": [{"id": e.key, "line": int(line.key), "amount": money(e.amount)} for e, line in pairs],
        "missing": missing,
        "unexpected": unexpected,
        "duplicates": duplicates,
        "skipped": len(entries) - len(ours) + len(lines) - len(theirs),
        "totals": {"ledger": money(booked), "statement": money(paid), "difference": money(booked - paid)},
    }


def main():
    try:
        found = report(sys.argv[1], sys.argv[2], read_rules(RULES))
    except BadRow as bad:
        print(bad, file=sys.stderr)
        return 2
    print(json.dumps(found, indent=2))
    return 1 if found["missing"] or found["unexpected"] else 0


if __name__ == "__main__":
    sys.exit(main())
