"""The gateway's process under load: memory that stays flat, and does not follow the size of what an agent sends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[3] / "bench" / "gateway.py"


def test_memory_is_flat_and_bounded() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--json", "--requests", "40"], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    grown = rows["gateway: memory after 300 requests"]
    assert grown["ratio"] < 1.15, grown  # against 180 requests
    assert rows["gateway: most memory so far"]["ours"] < 150
    large = rows["gateway: most memory, 8 bodies of 31 MiB at once"]
    assert large["ours"] < 400, large  # 248 MiB of bodies, of which two are held at once
    assert {row["unit"] for row in rows.values()} == {"ms", "1/s", "MiB"}
