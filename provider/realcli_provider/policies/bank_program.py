"""The program the scripted agent writes for bank-reconcile, with as much in it as it has been told."""

from __future__ import annotations

import re

# A line ending in "#? word" is there once the agent knows of `word`; one ending in "#! word" until then.
_TEMPLATE = '''
#!/usr/bin/env python3
"""Compare a ledger with a bank statement: reconcile.py LEDGER STATEMENT"""
import csv
import datetime
import decimal
import json
import sys

RULES = "/app/rules.conf"


def settings():
    found = {}
    for line in open(RULES, encoding="utf-8"):
        name, equals, value = line.partition("=")
        if equals and not name.lstrip().startswith("#"):
            found[name.strip()] = value.strip()
    return found


def load(path, date_column, date_format):
    kept = []
    for number, line in enumerate(open(path, encoding="utf-8", newline=""), 1):
        if line.strip() and not line.startswith("#"):  #? input
        if line.strip():  #! input
            kept.append((number, line))
    rows = []
    for (number, _), row in zip(kept[1:], csv.DictReader([line for _, line in kept])):
        try:
            row["amount"] = decimal.Decimal(row["amount"].replace(",", ""))  #? numbers
            row["amount"] = float(row["amount"].replace(",", ""))  #! numbers
            row["day"] = datetime.datetime.strptime(row[date_column], date_format).date()
        except (ValueError, KeyError, AttributeError, decimal.InvalidOperation):
            print(f"{path}:{number}: cannot read this row", file=sys.stderr)  #? status
            sys.exit(2)  #? status
            raise  #! status
        rows.append(row)
    return rows


def main():
    rules = settings()
    entries = load(sys.argv[1], "date", "%Y-%m-%d")
    lines = load(sys.argv[2], "booked", "%d.%m.%Y")
    duplicates, known = set(), {}  #? duplicates
    for entry in entries:  #? duplicates
        if entry["id"] in known:  #? duplicates
            duplicates.add(entry["id"])  #? duplicates
        known.setdefault(entry["id"], entry)  #? duplicates
    entries = list(known.values())  #? duplicates
    currency, rows = rules.get("currency", ""), len(entries) + len(lines)  #? currency
    if currency:  #? currency
        entries = [entry for entry in entries if entry["currency"] == currency]  #? currency
        lines = [line for line in lines if line["currency"] == currency]  #? currency
    skipped = rows - len(entries) - len(lines)  #? currency
    tolerance = int(rules.get("tolerance_days") or 0)  #? match
    free, matched, missing = list(lines), [], []
    for entry in sorted(entries, key=lambda entry: (entry["day"], entry["id"])):
        best = None
        for line in free:
            away = abs((line["day"] - entry["day"]).days)
            if line["amount"] != entry["amount"] or line["currency"] != entry["currency"]:
                continue
            if away > tolerance:  #? match
                continue  #? match
            word = entry["reference"].lower()  #? reference
            named = bool(word) and word in line["text"].lower()  #? reference
            rank = (not named, away, int(line["line"]))  #? reference
            rank = (away, int(line["line"]))  #! reference
            if best is None or rank < best[0]:
                best = (rank, line)
        if best is None:
            missing.append(entry["id"])
        else:
            free.remove(best[1])
            matched.append({"id": entry["id"], "line": int(best[1]["line"]), "amount": f"{entry['amount']:.2f}"})
    report = {}
    report["instance"] = rules.get("instance", "")  #? input
    report["matched"] = matched
    report["missing"] = sorted(missing)  #? report
    report["unexpected"] = sorted(int(line["line"]) for line in free)  #? report
    booked = sum((entry["amount"] for entry in entries), decimal.Decimal(0))  #? report
    paid = sum((line["amount"] for line in lines), decimal.Decimal(0))  #? report
    totals = {"ledger": booked, "statement": paid, "difference": booked - paid}  #? report
    report["totals"] = {name: f"{amount:.2f}" for name, amount in totals.items()}  #? report
    report["skipped"] = skipped  #? currency
    report["duplicates"] = sorted(duplicates)  #? duplicates
    print(json.dumps(report, indent=2))
    sys.exit(1 if missing or free else 0)  #? status


if __name__ == "__main__":
    main()
'''

# How a requirement is recognised in what the user said: a literal of it.
SIGNS = {
    "input": "`# instance:`",
    "numbers": "`DD.MM.YYYY`",
    "match": "are at most `tolerance_days`",
    "reference": "contains the `reference`",
    "report": "`matched`",
    "currency": "`skipped`",
    "duplicates": "`duplicates`",
    "status": "exit status",
}
_MARK = re.compile(r"^(.*?)\s+#([?!]) (\w+)$")


def known(told: str) -> set[str]:
    """What of the program the user has described."""
    text = " ".join(told.split())
    return {word for word, sign in SIGNS.items() if sign in text}


def program(words: set[str]) -> str:
    """The program with what stands in `words`."""
    lines = []
    for line in _TEMPLATE.strip().splitlines():
        mark = _MARK.match(line)
        if mark is None:
            lines.append(line)
        elif (mark[3] in words) == (mark[2] == "?"):
            lines.append(mark[1])
    return "\n".join(lines)
