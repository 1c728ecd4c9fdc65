"""Generators over csv.reader, fractions, sorting instead of searching."""

import collections
import csv
import datetime
import fractions
import itertools
import json
import sys

Row = collections.namedtuple("Row", "name day amount currency words")


class Unreadable(Exception):
    pass


def content(path):
    with open(path) as source:
        for number, line in enumerate(source, start=1):
            if line.strip() != "" and line[0] != "#":
                yield number, line


def rows(path, read_day):
    records = content(path)
    next(records)
    for number, line in records:
        try:
            name, day, amount, currency, words = next(csv.reader([line]))
            whole, dot, part = amount.replace(",", "").partition(".")
            if not dot or len(part) != 2 or not part.isdigit():
                raise ValueError(amount)
            yield Row(name, read_day(day), fractions.Fraction(whole + "." + part), currency, words.casefold())
        except ValueError:
            raise Unreadable(f"cannot read the row at {path}:{number}") from None


def german(text):
    day, month, year = text.split(".")
    if len(year) != 4:
        raise ValueError(text)
    return datetime.date(int(year), int(month), int(day))


def text(amount):
    cents = int(amount * 100)
    return ("-" if cents < 0 else "") + f"{abs(cents) // 100}.{abs(cents) % 100:0>2}"


def setting(name):
    with open("/app/rules.conf") as source:
        for line in source:
            if line.split("=")[0].strip() == name:
                return line.split("=", 1)[1].strip()
    return ""


def work(ledger, statement):
    entries, lines = list(rows(ledger, datetime.date.fromisoformat)), list(rows(statement, german))
    seen = collections.OrderedDict()
    for entry in entries:
        seen.setdefault(entry.name, []).append(entry)
    firsts = [group[0] for group in seen.values()]
    currency, tolerance = setting("currency"), int(setting("tolerance_days"))
    part = lambda row: not currency or row.currency == currency
    ours, theirs = sorted(filter(part, firsts), key=lambda e: (e.day, e.name)), list(filter(part, lines))
    used, matched = set(), []
    for entry in ours:

        def rank(line):
            return (-(entry.words in line.words if entry.words else False), abs(line.day - entry.day), int(line.name))

        for line in sorted(theirs, key=rank):
            same = (line.amount, line.currency) == (entry.amount, entry.currency)
            if same and line.name not in used and abs(line.day - entry.day).days <= tolerance:
                used.add(line.name)
                matched.append((entry, line))
                break
    found = {entry.name for entry, _ in matched}
    booked, paid = sum(e.amount for e in ours), sum(line.amount for line in theirs)
    return {
        "instance": setting("instance"),
        "matched": [{"id": e.name, "line": int(line.name), "amount": text(e.amount)} for e, line in matched],
        "missing": sorted(e.name for e in ours if e.name not in found),
        "unexpected": sorted(int(line.name) for line in theirs if line.name not in used),
        "totals": dict(zip(("ledger", "statement", "difference"), map(text, (booked, paid, booked - paid)))),
        "skipped": len(list(itertools.filterfalse(part, firsts + lines))),
        "duplicates": sorted(name for name, group in seen.items() if len(group) > 1),
    }


try:
    report = work(*sys.argv[1:])
except Unreadable as error:
    print("error:", error, file=sys.stderr)
    raise SystemExit(2) from None
json.dump(report, sys.stdout, indent=4, sort_keys=True)
raise SystemExit(1 if report["missing"] or report["unexpected"] else 0)
