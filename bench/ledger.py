"""What the ledger costs: events per second beside plain JSON lines, and memory under floods.

`python bench/ledger.py [--json] [--quick]`. Each measurement is a process of its own; writer and baseline are taken in turn in
one run, the fastest of each counts. Memory is the peak of the process (VmHWM): how it grows with the flood is the point, so every
flood is made in three sizes, and the baseline is the same process without one. Rows are {name, unit, ours, baseline, ratio}.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realcli.ledger.events import ToolResult
from realcli.ledger.writer import LedgerWriter
from realcli_session.agents.lines import LineSplitter

KEY = "sk-ant-a-key-of-the-bench-0123456789"
BLOCK = 1 << 20
ROUNDS = 3


def nothing(size: int, folder: Path) -> float:
    """The baseline of memory."""
    return 0.0


def events(size: int, folder: Path) -> float:
    """`size` small events through the writer; seconds."""
    writer = LedgerWriter(folder, secrets=[KEY])
    begin = time.perf_counter()
    for number in range(size):
        writer.emit("gateway", ToolResult(call_id=f"c{number}", text=f"small {number}"))
        for path in writer.take():  # as the uploader does
            path.unlink()
    seconds = time.perf_counter() - begin
    writer.close()
    return seconds


def plain(size: int, folder: Path) -> float:
    """The baseline of time: the same values as JSON lines, one write each; seconds."""
    with (folder / "plain").open("wb", buffering=0) as out:
        begin = time.perf_counter()
        for number in range(size):
            row = {"kind": "tool_result", "seq": number, "data": {"callId": f"c{number}", "text": f"small {number}"}}
            out.write(json.dumps(row, sort_keys=True).encode() + b"\n")
        return time.perf_counter() - begin


def line(size: int, folder: Path) -> float:
    """One line of `size` bytes on the agent's output; seconds."""
    splitter, block = LineSplitter(), b"x" * BLOCK
    begin = time.perf_counter()
    for _ in range(size // BLOCK):
        splitter.feed(block)
    splitter.feed(b"\n")
    return time.perf_counter() - begin


def bodies(size: int, folder: Path) -> float:
    """`size` bodies of 32 MB, stored once each; seconds."""
    writer = LedgerWriter(folder, secrets=[KEY])
    begin = time.perf_counter()
    for number in range(size):
        writer.blob(bytes([97 + number % 26]) * (32 << 20))
        for path in writer.take():
            path.unlink()
    seconds = time.perf_counter() - begin
    writer.close()
    return seconds


WORK: dict[str, Callable[[int, Path], float]] = {f.__name__: f for f in (nothing, events, plain, line, bodies)}


def peak() -> float:
    """MiB."""
    found = next(text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith("VmHWM"))
    return int(found.split()[1]) / 1024


def child(name: str, size: int) -> tuple[float, float]:
    """(seconds, peak MiB) of one measurement in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--child", name, str(size)], capture_output=True, check=True)
    seconds, memory = json.loads(done.stdout)
    return seconds, memory


def measure(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    shrink = 50 if quick else 1
    rows = []
    count = 100_000 // shrink
    pairs = [(child("events", count)[0], child("plain", count)[0]) for _ in range(1 if quick else ROUNDS)]
    ours, baseline = count / min(p[0] for p in pairs), count / min(p[1] for p in pairs)
    rows.append(row("small events written, beside plain JSON lines", "1/s", ours, baseline))
    floods = {
        "events": [(n // shrink, f"{n // shrink:,} small events") for n in (10_000, 100_000, 1_000_000)],
        "line": [(n * BLOCK // shrink, f"a line of {n // shrink:,} MiB") for n in (64, 256, 1024)],
        "bodies": [(n, f"{n} bodies of 32 MB") for n in ((1,) if quick else (1, 4, 16))],
    }
    for name, sizes in floods.items():
        for size, shown in sizes:
            rows.append(row(f"peak memory: {shown}", "MiB", child(name, size)[1], child("nothing", 0)[1]))
    return rows


def row(name: str, unit: str, ours: float, baseline: float) -> dict[str, Any]:
    """One row."""
    return {
        "name": name,
        "unit": unit,
        "ours": round(ours, 1),
        "baseline": round(baseline, 1),
        "ratio": round(ours / baseline, 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of everything: whether it runs, not what it costs")
    parser.add_argument("--child", nargs=2, metavar=("NAME", "SIZE"), help="internal: one measurement in this process")
    options = parser.parse_args()
    if options.child:
        with tempfile.TemporaryDirectory() as folder:
            seconds = WORK[options.child[0]](int(options.child[1]), Path(folder))
        json.dump([seconds, peak()], sys.stdout)
        return
    rows = measure(options.quick)
    if options.json:
        json.dump(rows, sys.stdout)
        return
    for found in rows:
        print(f"{found['name']:55} {found['ours']:>12} {found['baseline']:>12} {found['unit']:6} {found['ratio']}")


if __name__ == "__main__":
    main()
