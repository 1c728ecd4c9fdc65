"""20,000 updates of pods as fast as the API server takes them: all of them reach their statuses, and how long that took.

What is measured is the operator's watch layer (informer, store, queue, workers, client) with the test's own rule, which writes a
status for each change of a pod: `tests/integration/watch`, on an API server and an etcd of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.operator.servers import ROOT

FILE = "tests/integration/watch/test_watch_layer.py"
TEST = "test_20000_pod_updates_all_reach_their_trials"
PODS = 20_000


def of_burst() -> dict[str, Any]:
    """Figures of the test; CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory(prefix="bench-burst-") as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "-p", "no:cacheprovider", f"{FILE}::{TEST}"]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"REALCLI_FIGURES": str(figures)}, check=True)
        told = json.loads(figures.read_text())
    return {
        "what": "burst", "date": datetime.now(UTC).isoformat(timespec="seconds"), "trials": PODS, "parallelism": PODS,
        "figures": told,
    }  # fmt: skip
