"""What the record of executed commands costs: a loop of fork and exec, and one that does some work, with and without it.

`python bench/exec_record.py [--json] [--rounds N]`, as root or not. Prints seconds per loop, microseconds per command and the
ratio; both runs are taken in turn in the same process, the fastest of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from realcli_session.runner import RunnerClient, listen
from realcli_session.runner.port import CommandRow, Recording

ROOT = Path(__file__).resolve().parents[1]
LOOPS = {
    "nothing but exec": "i=0; while [ $i -lt {n} ]; do /bin/true; i=$((i+1)); done",
    "exec through PATH": "i=0; while [ $i -lt {n} ]; do env true; i=$((i+1)); done",
    "some work (perl)": "i=0; while [ $i -lt {n} ]; do perl -e 'for ($j=0;$j<200000;$j++) {{ $k+=$j }}'; i=$((i+1)); done",
}
COUNTS = {"nothing but exec": 1000, "exec through PATH": 500, "some work (perl)": 100}


async def a_runner(folder: str) -> tuple[RunnerClient, subprocess.Popen[bytes]]:
    """A runner of this source tree as a process."""
    path = f"{folder}/{time.monotonic_ns()}"
    paths = [str(ROOT), str(ROOT / "runner_image")]
    code = f"import sys; sys.path[:0] = {paths}; from realcli_runner.main import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, "--socket", path])  # noqa: ASYNC220
    return await listen(path).accept(30), process


async def count(recording: Recording, seen: list[int]) -> None:
    """Read as the session does."""
    async for row in recording.rows:
        seen[0] += isinstance(row, CommandRow)


async def timed(client: RunnerClient, script: str, recorded: bool) -> float:
    """Seconds of one loop."""
    begin = time.perf_counter()
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    done = await client.run(["/bin/sh", "-c", script], env=env, cwd="/", seconds=300, recorded=recorded)
    assert done.status.code == 0, done.stderr
    return time.perf_counter() - begin


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    options = parser.parse_args()
    rounds, as_json = options.rounds, options.json
    with tempfile.TemporaryDirectory() as folder:
        client, process = await a_runner(folder)
        recording = await client.record()
        if not recording.works:
            sys.exit(f"no record here: {recording.why}")
        seen = [0]
        reader = asyncio.create_task(count(recording, seen))
        rows = []
        if not as_json:
            print(f"{'loop':<24} {'commands':>8} {'without':>9} {'with':>9} {'per command':>12} {'ratio':>6}")
        for name, script in LOOPS.items():
            n = COUNTS[name]
            without, with_record = [], []
            for _ in range(rounds):
                without.append(await timed(client, script.format(n=n), recorded=False))
                with_record.append(await timed(client, script.format(n=n), recorded=True))
            fast, slow = min(without), min(with_record)
            ours, baseline = round(slow / n * 1e6), round(fast / n * 1e6)
            rows.append({"name": name, "unit": "us", "ours": ours, "baseline": baseline, "ratio": round(slow / fast, 2)})
            if as_json:
                continue
            print(f"{name:<24} {n:>8} {fast:>8.3f}s {slow:>8.3f}s {(slow - fast) / n * 1e6:>9.0f} us {slow / fast:>6.2f}")
        await client.settle_record()
        print(json.dumps(rows) if as_json else f"{seen[0]} commands were recorded")
        reader.cancel()
        await client.close()
        process.wait()


if __name__ == "__main__":
    asyncio.run(main())
