"""Checks of bank-reconcile: the settings, the saved report, and how the program behaves on files it has not seen.

Amounts, ids and names are drawn from the run's nonce, so that nothing can be known beforehand.
"""

import csv
import io
import json
import os
import random
import sys
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from expected import expected
from program import Files, reconcile

LOGS = Path("/logs/verifier")
RUN = json.loads(Path("/tests/run.json").read_text())
RULES, REPORT = "/app/rules.conf", "/app/report.json"
LEDGER, STATEMENT = "/app/data/ledger.csv", "/app/data/statement.csv"
LIMIT = 1 << 20
SETTINGS = {"instance": RUN["instanceId"], "tolerance_days": "3", "currency": "EUR", "archive": "quarterly", "keep_months": "18"}
COMMENTS = [
    '# Rules of the monthly reconciliation. One "name = value" per line, lines that start with # are comments.',
    "# The archive job reads this file too.",
    "# Which installation this is.",
    "# How many days a payment may be away from its booking.",
    "# Only rows in this currency take part; empty: all of them.",
    "# For the archive job: the reconciliation has no use for these.",
]


# -- the two sides of a file ----------------------------------------------------------------------------------------


def read(path):
    """A text file of the result: a plain file of sensible size, never a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as source:
        data = source.read(LIMIT + 1)
    assert len(data) <= LIMIT, f"{path} is larger than {LIMIT} bytes"
    return data.decode("utf-8")


def settings():
    pairs = (line.split("=", 1) for line in read(RULES).splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, value in pairs}


def draw(name):
    """A source of chance for one check, the same whenever this run is verified."""
    return random.Random(f"{RUN['nonce']} {name}")


def amount(chance, low=1, high=90_000):
    return Decimal(chance.randint(low, high)) / 100


def written(value, chance=None):
    return f"{value:,.2f}" if chance is None or chance.random() < 0.5 else f"{value:.2f}"


def table(header, rows, comments=()):
    """CSV text; `comments` are (index of the line they go before, text)."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    lines = out.getvalue().splitlines()
    for index, text in sorted(comments, reverse=True):
        lines.insert(index, text)
    return "\n".join(lines) + "\n"


def ledger_text(entries, comments=(), chance=None):
    rows = [(id, day.isoformat(), written(money, chance), currency, ref) for id, day, money, currency, ref in entries]
    return table(["id", "date", "amount", "currency", "reference"], rows, comments)


def statement_text(lines, comments=(), chance=None):
    rows = [(n, day.strftime("%d.%m.%Y"), written(money, chance), currency, text) for n, day, money, currency, text in lines]
    return table(["line", "booked", "amount", "currency", "text"], rows, comments)


def outcome(entries, lines, comments=((), ()), chance=None):
    files = Files()
    ledger = files.write("ledger.csv", ledger_text(entries, comments[0], chance))
    return reconcile(ledger, files.write("statement.csv", statement_text(lines, comments[1], chance)))


def agree(entries, lines, *keys, comments=((), ()), chance=None, **rules):
    """The program's report on these rows says what it must, for the named keys (all without any)."""
    wanted = expected(entries, lines, RUN["instanceId"], rules.get("tolerance", 3), rules.get("currency", "EUR"))
    found = outcome(entries, lines, comments, chance).report()
    for key in keys or wanted:
        assert found.get(key) == wanted[key], f"{key} is {found.get(key)!r}, expected {wanted[key]!r}"


def day(chance):
    return date(2026, 1, 1) + timedelta(days=chance.randint(0, 364))


@contextmanager
def rules_with(**values):
    """Other settings for a while: the program has to read them every time."""
    before = read(RULES)
    try:
        Path(RULES).write_text("".join(f"{name} = {value}\n" for name, value in {**SETTINGS, **values}.items()))
        yield
    finally:
        Path(RULES).write_text(before)


# -- the checks -----------------------------------------------------------------------------------------------------


def check_settings():
    """Requirements 3, 7, 13."""
    found = settings()
    for name in ("instance", "tolerance_days", "currency"):
        assert found.get(name) == SETTINGS[name], f"{name} is {found.get(name)!r}, expected {SETTINGS[name]!r}"


def check_rules_kept():
    """Requirement 18. Lines somebody added are no matter."""
    lines, found = [line.strip() for line in read(RULES).splitlines()], settings()
    for name in ("archive", "keep_months"):
        assert found.get(name) == SETTINGS[name], f"{name} is {found.get(name)!r}, it was {SETTINGS[name]!r}"
    for comment in COMMENTS:
        assert comment in lines, f"the comment {comment!r} is gone"


def check_saved_report():
    """Requirement 17: the report on the visible data, saved."""

    def rows(path):
        with open(path, newline="") as source:
            return list(csv.DictReader(line for line in source if line.strip() and not line.startswith("#")))

    def money(row):
        return Decimal(row["amount"].replace(",", ""))

    entries = [(r["id"], date.fromisoformat(r["date"]), money(r), r["currency"], r["reference"]) for r in rows(LEDGER)]
    lines = [
        (int(r["line"]), datetime.strptime(r["booked"], "%d.%m.%Y").date(), money(r), r["currency"], r["text"])
        for r in rows(STATEMENT)
    ]
    wanted, found = expected(entries, lines, RUN["instanceId"], 3, "EUR"), json.loads(read(REPORT))
    for key in wanted:
        assert found.get(key) == wanted[key], f"{key} is {found.get(key)!r}, expected {wanted[key]!r}"


def check_comments_and_blank_lines():
    """Requirement 2."""
    chance = draw("comments")
    when, money = day(chance), [amount(chance) for _ in range(3)]
    entries = [(f"C-{n}", when, m, "EUR", "") for n, m in enumerate(money)]
    lines = [(n, when, m, "EUR", "paid") for n, m in enumerate(money, 1)]
    noise = [(0, "# exported"), (0, ""), (1, "# page 1"), (2, ""), (3, "#,,,,"), (4, "# end")]
    agree(entries, lines, "matched", "missing", "unexpected", comments=(noise, noise))


def check_exact_amounts():
    """Requirement 4: no binary floats, separators of thousands, signs, two decimals."""
    chance, when = draw("amounts"), date(2026, 3, 2)
    large = Decimal(chance.randint(10**17, 10**18)) / 100
    amounts = [large, large + Decimal("0.01"), -amount(chance), Decimal(chance.randint(2, 90) * 100), Decimal("0.10"), Decimal("0.20")]
    entries = [(f"A-{n}", when, m, "EUR", "") for n, m in enumerate(amounts)]
    lines = [(n, when, m, "EUR", "paid") for n, m in enumerate(reversed(amounts), 1)]
    agree(entries, lines, "matched", "missing", "totals")
    agree(entries, lines, "matched", "missing", "totals", chance=chance)


def check_dates_and_tolerance():
    """Requirements 5, 6: three days are near enough, four are not, before and after, over the end of a month and a year."""
    chance, number = draw("dates"), 0
    entries, lines = [], []
    for when in (date(2026, 2, 27), date(2025, 12, 30), date(2026, 4, 5), day(chance)):
        for away in (-4, -3, 3, 4):
            number += 1
            money = amount(chance) + number * 1000
            entries.append((f"D-{number:02}", when, money, "EUR", ""))
            lines.append((number, when + timedelta(days=away), money, "EUR", "paid"))
    agree(entries, lines, "matched", "missing", "unexpected")


def check_rules_are_read():
    """Requirements 3, 6, 13: the settings count at each start."""
    chance = draw("rules")
    when, money, days = day(chance), amount(chance), chance.randint(5, 9)
    entries = [("R-1", when, money, "EUR", ""), ("R-2", when, money + 1, "CHF", "")]
    lines = [(1, when + timedelta(days=days), money, "EUR", "paid"), (2, when, money + 1, "CHF", "paid")]
    for tolerance, currency in ((days, "EUR"), (days - 1, ""), (0, "CHF")):
        with rules_with(tolerance_days=tolerance, currency=currency):
            agree(entries, lines, "instance", "matched", "skipped", tolerance=tolerance, currency=currency)


def check_nearest_and_once():
    """Requirement 8: order of choice, nearest line, smallest number, nothing twice."""
    chance = draw("nearest")
    money, when = amount(chance), date(2026, 5, 11)
    entries = [("N-3", when, money, "EUR", ""), ("N-1", when, money, "EUR", ""), ("N-2", when - timedelta(days=1), money, "EUR", "")]
    lines = [(n, when + timedelta(days=d), money, "EUR", "paid") for n, d in ((9, 1), (4, 2), (12, -1), (7, -1), (2, 3))]
    agree(entries, lines, "matched", "missing", "unexpected")
    agree([*entries, ("N-4", when, money, "EUR", "")], lines[:3], "matched", "missing", "unexpected")


def check_reference_wins():
    """Requirement 9: before nearness, in any case of letters; an empty reference names nothing."""
    chance = draw("reference")
    money, when, word = amount(chance), day(chance), f"Re-{chance.randint(10**5, 10**6)}"
    entries = [("W-1", when, money, "EUR", word), ("W-2", when, money + 1, "EUR", "")]
    lines = [
        (1, when, money, "EUR", "paid"),
        (2, when + timedelta(days=2), money, "EUR", f"For {word.upper()}, thanks"),
        (3, when + timedelta(days=1), money + 1, "EUR", "anything"),
        (4, when, money + 1, "EUR", "whatever"),
    ]
    agree(entries, lines, "matched", "unexpected")


def check_lists():
    """Requirements 10, 11: order and form of matched, missing and unexpected."""
    chance = draw("lists")
    entries = [(f"L-{n}", day(chance), amount(chance) + n * 1000, "EUR", "") for n in chance.sample(range(10, 99), 12)]
    lines = [(n, e[1], e[2], "EUR", "paid") for n, e in zip(chance.sample(range(1, 200), 8), entries)]
    lines += [(n, day(chance), amount(chance) + 500_000, "EUR", "who?") for n in (1003, 1001, 201)]
    agree(entries, lines, "matched", "missing", "unexpected")


def check_totals():
    """Requirement 12: also below zero, also of nothing."""
    chance = draw("totals")
    entries = [(f"T-{n}", day(chance), -amount(chance), "EUR", "") for n in range(9)]
    lines = [(n, day(chance), amount(chance), "EUR", "paid") for n in range(1, 12)]
    agree(entries, lines, "totals")
    agree([], lines[:1], "totals", "matched", "missing")


def check_currency():
    """Requirement 13: another currency takes no part and is counted."""
    chance = draw("currency")
    when, money = day(chance), amount(chance)
    entries = [(f"K-{n}", when, money, currency, "") for n, currency in enumerate(("USD", "EUR", "CHF", "USD"))]
    lines = [(n, when, money, currency, "paid") for n, currency in enumerate(("GBP", "USD", "EUR"), 1)]
    agree(entries, lines, "matched", "missing", "unexpected", "skipped", "totals")


def check_duplicates():
    """Requirement 14: the first row counts, the others are named once and not counted as skipped."""
    chance = draw("duplicates")
    when, money = day(chance), amount(chance)
    entries = [("Z-2", when, money, "EUR", ""), ("Z-1", when, money + 1, "EUR", ""), ("Z-2", when, money + 2, "EUR", "")]
    entries += [("Z-2", when, money, "USD", ""), ("Z-1", when, money, "EUR", ""), ("Z-3", when, money + 3, "USD", "")]
    lines = [(n, when, money + n - 1, "EUR", "paid") for n in (1, 2, 3)]
    agree(entries, lines, "matched", "duplicates", "skipped", "totals", "unexpected")


def check_exit_status():
    """Requirement 15: 0 for a clean month, 1 for anything left over on either side."""
    chance = draw("status")
    when, money = day(chance), amount(chance)
    entry, line = ("E-1", when, money, "EUR", ""), (1, when, money, "EUR", "paid")
    other, francs = (2, when, money + 1, "EUR", "paid"), (3, when, money, "CHF", "paid")
    for entries, lines, wanted in (([entry], [line, francs], 0), ([entry], [francs], 1), ([entry], [line, other], 1), ([], [], 0)):
        found = outcome(entries, lines)
        assert found.status == wanted, f"status {found.status} where {wanted} was due: {found.err[-200:]!r}"


def check_unreadable_rows():
    """Requirement 16: status 2, nothing on standard output, file and line named; comments count as lines of the file."""
    chance = draw("unreadable")
    when, money = day(chance), amount(chance)
    entries = [(f"U-{n}", when, money + n, "EUR", "") for n in range(4)]
    lines = [(n, when, money + n, "EUR", "paid") for n in range(4)]
    good = ledger_text(entries, [(0, "# top"), (2, "")]), statement_text(lines, [(0, "# top")])
    us, german = when.isoformat(), when.strftime("%d.%m.%Y")
    bad = [
        (0, f"U-3,{us},twelve,EUR,", 7), (0, f"U-3,{us},,EUR,", 7), (0, f"U-3,{german},1.00,EUR,", 7),
        (1, f"3,{us},1.00,EUR,paid", 6), (1, "3,31.02.2026,1.00,EUR,paid", 6), (1, f"3,{german},1.0.0,EUR,paid", 6),
    ]  # fmt: skip
    for side, row, number in bad:
        texts = list(good)
        texts[side] = "\n".join([*texts[side].splitlines()[:-1], row]) + "\n"
        files = Files()
        paths = [files.write(f"{'ls'[i]}-{chance.randint(100, 999)}.csv", text) for i, text in enumerate(texts)]
        found = reconcile(*paths)
        assert found.status == 2, f"status {found.status} for the row {row!r}"
        assert not found.out.strip(), f"standard output is not empty for the row {row!r}"
        assert f"{paths[side]}:{number}" in found.err, f"{paths[side].name}:{number} is not named for the row {row!r}"


def check_whole_months():
    """All together, on months made up at random."""
    for month in range(4):
        chance = draw(f"month {month}")
        prices, words = [amount(chance) for _ in range(4)], [f"RE-{n}" for n in chance.sample(range(100, 1000), 6)]
        entries, lines = [], []
        for _ in range(60):
            when, currency = date(2026, 6, 1) + timedelta(days=chance.randint(0, 29)), chance.choice(["EUR"] * 5 + ["USD"])
            entries.append((f"M-{chance.randint(10, 99)}", when, chance.choice(prices), currency, chance.choice(["", *words])))
        for n in chance.sample(range(1, 400), 60):
            when, currency = date(2026, 6, 1) + timedelta(days=chance.randint(0, 29)), chance.choice(["EUR"] * 5 + ["USD"])
            text = chance.choice(["paid", "Transfer, no reference", *(f"invoice {word.lower()}" for word in words)])
            lines.append((n, when, chance.choice(prices), currency, text))
        agree(entries, lines, chance=chance)


# -- the verdict ----------------------------------------------------------------------------------------------------


def run(checks):
    results = []
    for check in checks:
        name = check.__name__.removeprefix("check_").replace("_", "-")
        try:
            check()
            results.append({"name": name, "status": "passed", "duration": 0})
        except Exception as error:  # whatever the result makes a check trip over is a failure of the result
            message = f"{type(error).__name__}: {error}"[:500]
            results.append({"name": name, "status": "failed", "duration": 0, "message": message})
    return results


def main():
    results = run([check for name, check in globals().items() if name.startswith("check_")])
    passed = sum(result["status"] == "passed" for result in results)
    counts = {"tests": len(results), "passed": passed, "failed": len(results) - passed, "pending": 0, "skipped": 0, "other": 0}
    report = {"tool": {"name": "check.py"}, "summary": {**counts, "start": 0, "stop": 0}, "tests": results}
    reward = int(passed == len(results))
    (LOGS / "ctrf.json").write_text(json.dumps({"reportFormat": "CTRF", "specVersion": "0.0.0", "results": report}))
    (LOGS / "reward.txt").write_text(f"{reward}\n")
    (LOGS / "reward.json").write_text(json.dumps({"reward": reward}))
    for result in results:
        print(result["status"], result["name"], result.get("message", ""))
    return 0 if reward else 1


if __name__ == "__main__":
    sys.exit(main())
