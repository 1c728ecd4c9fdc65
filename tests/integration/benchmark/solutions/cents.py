"""Whole cents, one class per file, argparse, lines cut by hand."""

import argparse
import json
import re
import sys
from datetime import datetime
from pathlib import Path

AMOUNT = re.compile(r"-?(\d{1,3}(,\d{3})+|\d+)\.\d\d")


def fields(line):
    found, text, quoted = [], "", False
    for char in line.rstrip("\r\n"):
        if char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            found.append(text)
            text = ""
        else:
            text += char
    return [*found, text]


def cents(text):
    if not AMOUNT.fullmatch(text):
        raise ValueError(text)
    return int(text.replace(",", "").replace(".", ""))


def money(value):
    sign = "-" if value < 0 else ""
    return f"{sign}{abs(value) // 100}.{abs(value) % 100:02d}"


class Table:
    def __init__(self, name, date_format):
        self.rows = []
        header = None
        for number, line in enumerate(Path(name).read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if header is None:
                header = fields(line)
                continue
            values = fields(line)
            try:
                self.rows.append((values[0], datetime.strptime(values[1], date_format), cents(values[2]), values[3], values[4]))
            except (ValueError, IndexError):
                sys.exit(refuse(f"{name}:{number}: not readable"))


def refuse(message):
    sys.stderr.write(message + "\n")
    return 2


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("ledger")
    arguments.add_argument("statement")
    asked = arguments.parse_args()
    pairs = re.findall(r"^([a-z_]+)[ \t]*=[ \t]*(.*?)[ \t]*$", Path("/app/rules.conf").read_text(), re.MULTILINE)
    rules = dict(pairs)
    entries, lines = Table(asked.ledger, "%Y-%m-%d").rows, Table(asked.statement, "%d.%m.%Y").rows
    unique, again = {}, set()
    for row in entries:
        if row[0] in unique:
            again.add(row[0])
        unique.setdefault(row[0], row)
    ours = [row for row in unique.values() if rules["currency"] in ("", row[3])]
    theirs = {int(row[0]): row for row in lines if rules["currency"] in ("", row[3])}
    free, matched, missing = dict(theirs), [], []
    for id, day, amount, currency, reference in sorted(ours, key=lambda row: (row[1], row[0])):
        near = [
            (reference == "" or reference.upper() not in line[4].upper(), abs((line[1] - day).days), number)
            for number, line in free.items()
            if line[2:4] == (amount, currency) and abs((line[1] - day).days) <= int(rules["tolerance_days"])
        ]
        if near:
            del free[min(near)[2]]
            matched.append({"amount": money(amount), "line": min(near)[2], "id": id})
        else:
            missing.append(id)
    sums = [sum(row[2] for row in ours), sum(row[2] for row in theirs.values())]
    report = {
        "totals": {"ledger": money(sums[0]), "statement": money(sums[1]), "difference": money(sums[0] - sums[1])},
        "duplicates": sorted(again), "skipped": len(unique) + len(lines) - len(ours) - len(theirs), "instance": rules["instance"],
        "matched": matched, "missing": sorted(missing), "unexpected": sorted(free), "made_by": "cents",
    }  # fmt: skip
    print(json.dumps(report, ensure_ascii=False))
    return int(bool(missing or free))


sys.exit(main())
