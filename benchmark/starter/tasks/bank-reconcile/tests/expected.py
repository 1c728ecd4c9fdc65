"""What the report must say, worked out from rows as the tests made them: a second opinion, not the reference solution."""

from decimal import Decimal


def two(amount):
    return str(amount.quantize(Decimal("0.01")))


def expected(entries, lines, instance, tolerance, currency):
    """The report on `entries` (id, day, amount, currency, reference) and `lines` (line, day, amount, currency, text)."""
    seen, duplicates = {}, set()
    for entry in entries:
        if seen.setdefault(entry[0], entry) is not entry:
            duplicates.add(entry[0])
    ledger = [entry for entry in seen.values() if not currency or entry[3] == currency]
    statement = [line for line in lines if not currency or line[3] == currency]
    taken, matched, missing = set(), [], []
    for id, day, amount, kind, reference in sorted(ledger, key=lambda entry: (entry[1], entry[0])):
        best = None
        for number, booked, paid, other, text in statement:
            away = abs(booked.toordinal() - day.toordinal())
            if number in taken or paid != amount or other != kind or away > tolerance:
                continue
            named = bool(reference) and reference.casefold() in text.casefold()
            best = min(best or (2, 0, 0), (0 if named else 1, away, number))
        if best is None:
            missing.append(id)
        else:
            taken.add(best[2])
            matched.append({"id": id, "line": best[2], "amount": two(amount)})
    here, there = sum((e[2] for e in ledger), Decimal(0)), sum((line[2] for line in statement), Decimal(0))
    return {
        "instance": instance,
        "matched": matched,
        "missing": sorted(missing),
        "unexpected": sorted(line[0] for line in statement if line[0] not in taken),
        "duplicates": sorted(duplicates),
        "skipped": len(seen) - len(ledger) + len(lines) - len(statement),
        "totals": {"ledger": two(here), "statement": two(there), "difference": two(here - there)},
    }
