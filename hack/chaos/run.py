"""Faults, one after the other, and what became of the sweeps that met them. `make chaos`

    python hack/chaos/run.py [--seed N] [--minutes M] [--only EXPRESSION] [--without-kind] [--keep FILE] [--write docs/chaos.md]
    python hack/chaos/run.py --kept FILE --write docs/chaos.md

Everything that is drawn is drawn from the seed; each test has a generator of its own, so `--only` repeats what it met in the
whole run. ``--minutes``: how long what happens at random goes on. ``--only``: as pytest's -k; nothing is written then.
``--keep``: rows are added to that file too; ``--kept`` draws the table of such a file, in which parts of several runs may be:
each row has its own day and seed, tests that are no more are left out, and those without a row are named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Part(NamedTuple):
    """Tests that need the same servers."""

    title: str
    paths: tuple[str, ...]
    kind: bool = False


class Section(NamedTuple):
    """A part with the rows of its tests; ``tests``: all that it has, whether they ran or not."""

    part: Part
    rows: list[dict[str, Any]]
    tests: tuple[str, ...]


PARTS = (
    Part(
        "API server, controllers and a stand-in kubelet: the short list, also in `make test`",
        ("tests/integration/operator/faults",),
    ),
    Part("The same, the long list", ("tests/chaos",)),
    Part(
        "Real sessions, agents and object store as processes: stopped, refusing, full",
        ("tests/integration/disturb", "tests/integration/session/test_spool_full.py", "tests/integration/ledger/test_outage.py"),
    ),
    Part("The kind cluster, everything real", ("tests/chaos/kind",), kind=True),
)


def main() -> int:
    asked = arguments()
    if asked.kept:
        last = {row["test"]: row for row in map(json.loads, Path(asked.kept).read_text().splitlines())}
        sections = [Section(part, kept(part, last), tests_of(part)) for part in PARTS]
        show(table(sections, asked.note), asked.write)
        return int(any(row["outcome"] == "failed" for section in sections for row in section.rows))
    if not asked.without_kind:
        subprocess.run(["make", "-s", "images"], cwd=ROOT, check=True)
    sections, code = [], 0
    for part in PARTS:
        rows, failed = ([], 0) if part.kind and asked.without_kind else run(part, asked)
        sections.append(Section(part, rows, tests_of(part)))
        code = code or failed
    show(table(sections, asked.note), None if asked.only else asked.write)
    return code


def kept(part: Part, last: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a part's tests, the last of each; tests that are no more have none."""
    known = set(tests_of(part))
    return [row for test, row in last.items() if test in known]


@cache
def tests_of(part: Part) -> tuple[str, ...]:
    """Names of all tests of a part."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib", *ignored(part)]
    listed = subprocess.run([*command, *part.paths], cwd=ROOT, check=True, capture_output=True, text=True)
    return tuple(line for line in listed.stdout.splitlines() if "::" in line)


def ignored(part: Part) -> list[str]:
    """The kind cluster's tests lie below the others, and are a part of their own."""
    return [] if part.kind else ["--ignore=tests/chaos/kind"]


def show(text: str, file: str | None) -> None:
    """Print the table, and write it where that was asked for."""
    print(text)
    if file:
        (ROOT / file).write_text(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--only")
    parser.add_argument("--without-kind", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--kept")
    parser.add_argument("--note", default="", help="a sentence about the run, for the page")
    parser.add_argument("--write")
    return parser.parse_args()


def run(part: Part, asked: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Rows of a part's tests, and pytest's exit code (0 also where ``--only`` leaves nothing of it)."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.touch()
        environment = {
            **os.environ,
            "REALCLI_CHAOS_SEED": str(asked.seed),
            "REALCLI_CHAOS_MINUTES": str(asked.minutes),
            "REALCLI_CHAOS_RESULTS": str(results),
            "REALCLI_PATIENCE": os.environ.get("REALCLI_PATIENCE", "5"),
        }
        command = [sys.executable, "-m", "pytest", "-p", "tests.support.chaos_results", *part.paths, *ignored(part)]
        command += ["-k", asked.only] if asked.only else []
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        rows = [json.loads(line) for line in results.read_text().splitlines()]
        if asked.keep:
            with Path(asked.keep).open("a") as kept:
                kept.write(results.read_text())
        for row in rows:
            if row["outcome"] == "failed":
                name = row["test"].rsplit("::", 1)[-1]
                print(f"again: make chaos CHAOS=\"--seed {asked.seed} --minutes {asked.minutes:g} --only '{name}'\"")
        return rows, 0 if code == 5 and asked.only else code


AGAIN = (
    'One fault again: `make chaos CHAOS="--only back_and_forth"`, a name of the table with underscores; `--seed` draws others, '
    "`--without-kind` leaves the kind cluster out. Rows *report …* are bugs that were reported of operators like this one."
)


def table(sections: list[Section], note: str = "") -> str:
    """The page."""
    rows = [row for section in sections for row in section.rows]
    days = sorted({row["day"] for row in rows})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "nothing was run"
    seeds = ", ".join(f"{seed}" for seed in sorted({row["seed"] for row in rows}))
    drawn = ", ".join(f"{minutes:g}" for minutes in sorted({row["drawn"] for row in rows}))
    lines = [
        "# Faults: what was done to a running sweep, and what became of it",
        "",
        "Written by `make chaos` (`hack/chaos/run.py`); what is injected where, and why: [design 044](design/044-faults.md).",
        f"{machine()}, {when}, seed {seeds}, {drawn} minutes of what happens at random.",
        *([note] if note else []),
        AGAIN,
        "After each fault the end state is audited from outside: every pod name created and run once by the API server's audit",
        "log and the kubelet, every seal in storage anchored in a status, every outcome one of the table and the one that the",
        "trial's own pods told, nothing done again that had succeeded. On kind: each anchor against the ledger in storage,",
        "attempts and report there against the status, every pod name of one pod, no pod left; the audit log is not read.",
        "",
    ]
    for part, rows, tests in sections:
        lines += [f"## {part.title}", ""]
        if not rows:
            lines += ["Not run.", ""]
            continue
        lines += ["| fault | runs | minutes | what happened | result |", "|---|---:|---:|---|---|"]
        grouped: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            grouped[row["test"].split("::")[0], name_of(row["test"])].append(row)
        for (_, name), cases in grouped.items():
            about = cases[0]["about"].split(". ")[0].rstrip(".")
            told = f"**{name}**" + (f": {about}" if about and "::test_report[" not in cases[0]["test"] else "")
            failed = [case["test"].split("[")[-1].rstrip("]") for case in cases if case["outcome"] == "failed"]
            skipped = sum(case["outcome"] == "skipped" for case in cases)
            result = f"failed: {', '.join(failed)}" if failed else "as expected" if not skipped else f"{skipped} skipped"
            minutes = sum(case["seconds"] for case in cases) / 60
            lines.append(f"| {told} | {len(cases)} | {minutes:.1f} | {summed(cases)} | {result} |")
        lines += ["", f"{sum(row['seconds'] for row in rows) / 60:.1f} minutes.", ""]
        missing = sorted({name_of(test) for test in set(tests) - {row["test"] for row in rows}})
        lines += [f"Not run: {', '.join(missing)}.", ""] if missing else []
    return "\n".join(lines)


def name_of(test: str) -> str:
    """The fault that a test is a case of; each bug report is one."""
    whole = test if "::test_report[" in test else test.split("[")[0]
    return re.sub(r"[_\[\]-]", " ", whole.rsplit("::test_", 1)[-1]).strip()


def summed(cases: list[dict[str, Any]]) -> str:
    """Facts of all cases: numbers are added, words told once."""
    numbers: defaultdict[str, float] = defaultdict(float)
    words: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        for name, value in case["facts"].items():
            try:
                number = float(value)
                numbers[name] += number
            except ValueError:
                words[name] += [] if value in words[name] else [value]
    told = [f"{name.replace('_', ' ')} {' and '.join(values)}" for name, values in words.items()]
    return ", ".join([*told, *(f"{value:g} {name.replace('_', ' ')}" for name, value in numbers.items())])


def machine() -> str:
    """Processor, cores, memory."""
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    size = f", {int(memory[1]) / 2**20:.0f} GiB" if memory else ""
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores{size}"


if __name__ == "__main__":
    raise SystemExit(main())
