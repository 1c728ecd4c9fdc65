"""Faults, one after the other, and what became of the sweeps that met them. `make chaos`

    python hack/chaos/run.py [--seed N] [--minutes M] [--only EXPRESSION] [--without-kind] [--keep FILE] [--write docs/chaos.md]
    python hack/chaos/run.py --seed N --minutes M --kept FILE --write docs/chaos.md

Everything that is drawn is drawn from the seed; each test has a generator of its own, so `--only` repeats what it met in the
whole run. ``--minutes``: how long what happens at random goes on. ``--only``: as pytest's -k; nothing is written then.
``--keep``: rows are added to that file too; ``--kept`` draws the table of such a file, in which parts of several runs may be.
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Part(NamedTuple):
    """Tests that need the same servers."""

    title: str
    paths: tuple[str, ...]
    kind: bool = False


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
        return drawn([json.loads(line) for line in Path(asked.kept).read_text().splitlines()], asked)
    if not asked.without_kind:
        subprocess.run(["make", "-s", "images"], cwd=ROOT, check=True)
    sections: list[tuple[Part, list[dict[str, Any]]]] = []
    code = 0
    for part in PARTS:
        if part.kind and asked.without_kind:
            sections.append((part, []))
            continue
        rows, failed = run(part, asked)
        sections.append((part, rows))
        code = code or failed
    show(table(sections, asked), None if asked.only else asked.write)
    return code


def drawn(rows: list[dict[str, Any]], asked: argparse.Namespace) -> int:
    """The table of kept rows; the last row of a test is the one that counts."""
    last = {row["test"]: row for row in rows}
    sections: list[tuple[Part, list[dict[str, Any]]]] = [(part, []) for part in PARTS]
    for row in last.values():
        fits = [index for index, part in enumerate(PARTS) if any(row["test"].startswith(path) for path in part.paths)]
        sections[fits[-1]][1].append(row)
    show(table(sections, asked), asked.write)
    return int(any(row["outcome"] == "failed" for row in last.values()))


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
        }
        command = [sys.executable, "-m", "pytest", "-p", "tests.support.chaos_results", *part.paths]
        command += ["--ignore=tests/chaos/kind"] if not part.kind else []
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


def table(sections: list[tuple[Part, list[dict[str, Any]]]], asked: argparse.Namespace) -> str:
    """The page."""
    lines = [
        "# Faults: what was done to a running sweep, and what became of it",
        "",
        "Written by `make chaos` (`hack/chaos/run.py`); what is injected where, and why: [design 044](design/044-faults.md).",
        f"{machine()}, {datetime.now(UTC):%Y-%m-%d}, seed {asked.seed}, {asked.minutes:g} minutes of what happens at random.",
        "After each fault the end state is audited from outside: every pod name created once by the API server's audit log,",
        "every seal in storage anchored in a status, every outcome one of the table. On kind: each anchor against the ledger in",
        "storage, attempts in storage against the status, reason and reward, no pod left; the audit log is not read.",
        "",
    ]
    for part, rows in sections:
        lines += [f"## {part.title}", ""]
        if not rows:
            lines += ["Not run.", ""]
            continue
        lines += ["| fault | runs | minutes | what happened | result |", "|---|---:|---:|---|---|"]
        grouped: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            grouped[row["test"] if "::test_report[" in row["test"] else row["test"].split("[")[0]].append(row)
        for test, cases in grouped.items():
            name = re.sub(r"[_\[\]-]", " ", test.rsplit("::test_", 1)[-1]).strip()
            about = cases[0]["about"].split(". ")[0].rstrip(".")
            told = f"**{name}**" + (f": {about}" if about and "::test_report[" not in test else "")
            failed = [case["test"].split("[")[-1].rstrip("]") for case in cases if case["outcome"] == "failed"]
            skipped = sum(case["outcome"] == "skipped" for case in cases)
            result = f"failed: {', '.join(failed)}" if failed else "as expected" if not skipped else f"{skipped} skipped"
            minutes = sum(case["seconds"] for case in cases) / 60
            lines.append(f"| {told} | {len(cases)} | {minutes:.1f} | {summed(cases)} | {result} |")
        lines += ["", f"{sum(row['seconds'] for row in rows) / 60:.1f} minutes.", ""]
    return "\n".join(lines)


def summed(cases: list[dict[str, Any]]) -> str:
    """Facts of all cases: numbers are added, words told once."""
    numbers: defaultdict[str, float] = defaultdict(float)
    words: dict[str, str] = {}
    for case in cases:
        for name, value in case["facts"].items():
            try:
                number = float(value)
                numbers[name] += number
            except ValueError:
                words[name] = value
    told = [f"{name.replace('_', ' ')} {value}" for name, value in words.items()]
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
