"""`make bench`: every benchmark of this folder, as one table in docs/benchmarks.md and one JSON in out/bench.json. The section
about the operator is `make bench-operator`'s and is kept.

`python bench/run.py [NAME ...] [--keep]`. A benchmark is a file here that prints a JSON list of rows {name, unit, ours, baseline,
ratio} when called with `--json`; ours and baseline are taken in turn in the same run. `--keep`: print, and write no file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.operator.page import results, section  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench`; do not edit. Ours and the baseline are taken in turn in the same run, on a machine that does other
things too: the ratios say more than the numbers. What is measured, and beside what, stands at the top of each file in `bench/`.
"""


def benchmarks() -> list[Path]:
    """The files that are benchmarks."""
    return sorted(path for path in Path(__file__).parent.glob("*.py") if path.name != "run.py")


def machine() -> dict[str, Any]:
    """What it ran on."""
    cpu = [
        text.partition(":")[2].strip() for text in Path("/proc/cpuinfo").read_text().splitlines() if text.startswith("model name")
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) >> 20
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{memory} GiB",
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
    }


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Run one."""
    done = subprocess.run([sys.executable, str(path), "--json"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def page(found: dict[str, list[dict[str, Any]]], where: dict[str, Any]) -> str:
    """The page."""
    told = [where["cpu"], f"{where['cores']} cores", where["memory"], f"Linux {where['kernel']}", f"Python {where['python']}"]
    parts = [HEAD, f"{where['date']}: {', '.join(told)}."]
    for name, rows in found.items():
        parts.append(f"\n## {name}\n\n| | ours | baseline | unit | ratio |\n|---|---:|---:|---|---:|")
        parts += [f"| {r['name']} | {r['ours']:,} | {r['baseline']:,} | {r['unit']} | {r['ratio']} |" for r in rows]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run; all without")
    parser.add_argument("--keep", action="store_true", help="write no file")
    options = parser.parse_args()
    paths = [path for path in benchmarks() if not options.names or path.stem in options.names]
    if not paths:
        sys.exit(f"no benchmark is called so; there are {', '.join(path.stem for path in benchmarks())}")
    found = {}
    for path in paths:
        print(f"    {path.stem}", file=sys.stderr, flush=True)
        found[path.stem] = rows_of(path)
    where = machine()
    text = page(found, where)
    print(text)
    if options.keep or options.names:
        return
    (ROOT / "out").mkdir(exist_ok=True)
    (ROOT / "out" / "bench.json").write_text(json.dumps({"machine": where, "rows": found}, indent=1) + "\n")
    PAGE.write_text(text + section(results()))


if __name__ == "__main__":
    main()
