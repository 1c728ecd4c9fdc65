"""A session has 512 MiB. An agent program that prints and sends as much as it can does not take more of it."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from realcli.api.termination import Result
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from tests.integration.session.harness import Sweep

LIMIT = 512 << 20
FLOOD = """#!/usr/bin/python3 -u
import json, os, sys, time, urllib.error, urllib.request
LINE, EVENTS, BODIES = {line}, {events}, {bodies}
def say(**line): print(json.dumps(line), flush=True)
def hear():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
asked = hear()
say(type="control_response", response=dict(subtype="success", request_id=asked["request_id"]))
say(type="user", isReplay=True, uuid=hear()["uuid"])
block = b"x" * (1 << 20)
for _ in range(LINE >> 20): sys.stdout.buffer.write(block)
sys.stdout.buffer.write(b"\\n"); sys.stdout.flush()
def ask(content):
    body = dict(model="claude-sonnet-4-5", max_tokens=5, messages=[dict(role="user", content=content)])
    headers = {{"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    try: urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
    except urllib.error.HTTPError as error: print("refused", error.code, error.read()[:200], flush=True)
for start in range(0, EVENTS, 5000):
    ask([dict(type="tool_result", tool_use_id=f"c{{n}}", content=f"small {{n}}") for n in range(start, start + 5000)])
for number in range(BODIES): ask(chr(97 + number) * (31 << 20))
say(type="result", is_error=False, terminal_reason="completed")
time.sleep(600)
"""


def peak(pid: int) -> int:
    """The most memory a process ever had, in bytes; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


@pytest.mark.parametrize(
    ("line", "events", "bodies"),
    [
        pytest.param(64 << 20, 10_000, 2, id="short"),
        pytest.param(1 << 30, 1_000_000, 20, id="whole", marks=pytest.mark.slow),
    ],
)
def test_a_flood_does_not_end_the_session(
    plan: Callable[..., Sweep], mini: Callable[..., Path], tmp_path: Path, line: int, events: int, bodies: int
) -> None:
    (tmp_path / "agent").mkdir()
    program = tmp_path / "agent" / "claude"
    program.write_text(FLOOD.format(line=line, events=events, bodies=bodies))
    program.chmod(0o755)
    sweep = plan(suite=mini("true", "true"), exec={"deadline": "1h"})
    sweep.agent = program.parent
    ordinal = sweep.ordinal("mini", "EXEC")
    most = 0
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        resource.prlimit(pod.session.pid, resource.RLIMIT_DATA, (LIMIT, LIMIT))  # what it asks for beyond that, it does not get
        while pod.session.poll() is None:
            most = max(most, peak(pod.session.pid))
            time.sleep(0.05)  # what a process takes can only be looked at
        ended = pod.ended()
    print(f"{most >> 20} MiB at most", file=sys.stderr)
    assert ended.termination is not None, ended.stderr
    assert (ended.termination.result, ended.termination.reason) == (Result.WORK_SEALED, "Completed"), [
        event.data for event in sweep.events(ordinal) if event.kind == "agent_exit"
    ]
    root = sweep.attempt(ordinal).root
    report = verify_attempt(StoreReader(sweep.store, root), root, ended.termination.seal)
    assert report.ok, report.findings
    assert report.events > events
    told = [str(e.data.get("message")) for e in sweep.events(ordinal)[:2000] if e.kind == "error"]
    assert f"a line of its output is {line} bytes long and was skipped" in told
    assert 0 < most < LIMIT, f"{most >> 20} MiB"
