"""docs/ledger.md: its example is what the writer writes and the commands print, and it names every kind.

`REALCLI_UPDATE_GOLDEN=1 pytest tests/unit/ledger/test_docs.py` writes the generated parts anew.
"""

from __future__ import annotations

import hashlib
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from realcli.api.base import sha256_digest
from realcli.api.trial import Tokens
from realcli.ledger.events import (
    KINDS,
    ZERO_HASH,
    AgentMessage,
    EpisodeEnd,
    LedgerOpen,
    ModelRequest,
    RunData,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.ledger.seals import RunJson, SealedObject, TrialIdentity, WorkSeal
from realcli.ledger.writer import LedgerWriter
from realcli_cli import ledger

PAGE = Path(__file__).resolve().parents[3] / "docs" / "ledger.md"
UPDATE = os.environ.get("REALCLI_UPDATE_GOLDEN") == "1"


class Clock:
    """A second for every event."""

    seconds = 0

    def now(self) -> datetime:
        self.seconds += 1
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return float(self.seconds)


def attempt(folder: Path) -> dict[str, str]:
    """The files of the example."""
    trial = TrialIdentity(
        sweep_uid="0f6a2b1c", sweep="nightly", namespace="evals", ordinal=7, attempt=1, configuration="claude-code.sonnet",
        task="greeting", mode="EXEC", repeat=1, lock_digest=sha256_digest(b"lock"),
    )  # fmt: skip
    run = RunJson(instance_id="rc-7f3a", nonce="7" * 64, seed=7).canonical()
    writer = LedgerWriter(folder, clock=Clock(), secrets=["sk-a-real-key-0123456789"])
    writer.emit("session", LedgerOpen(**trial.model_dump(exclude={"namespace"}), session_version="0.1.0"))
    writer.emit("session", RunData(digest=sha256_digest(run)))
    writer.exchange = 1
    writer.emit("user", UserMessage(id="m1", text="Write hello into /app/out.", source_ids=["spec"]))
    message = writer.blob(b'{"content":"Write hello into /app/out.","role":"user"}')
    writer.turn = 1
    writer.emit("gateway", ModelRequest(
        request_id="r1", dialect="anthropic", path="/v1/messages", body_sha256=ZERO_HASH, body_bytes=211,
        model_asked="claude-sonnet-4-5", counted=True, messages=[message],
    ))  # fmt: skip
    writer.emit("agent", ToolCall(call_id="c1", name="Bash", input={"command": "echo hello > /app/out"}))
    writer.emit("gateway", ToolResult(call_id="c1", text="\x1b[2Jdone, with key sk-a-real-key-0123456789\n"))
    writer.emit("agent", AgentMessage(text="It is written."))
    writer.emit("agent", Yield(how="yielded"))
    writer.emit("session", EpisodeEnd(reason="Completed"))
    summary = writer.close()
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in writer.take()} | {"run.json": run}
    objects = [SealedObject(path=n, sha256=hashlib.sha256(d).hexdigest(), size=len(d)) for n, d in sorted(files.items())]
    files["work-seal.json"] = WorkSeal(
        objects=objects, trial=trial, reason="Completed", valid=True, run=sha256_digest(run), ledger=summary, turns=1,
        tokens=Tokens(input=50, output=20), working_seconds="8.000", started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:00:10Z",
    ).seal()  # fmt: skip
    return {name: data.decode() for name, data in sorted(files.items())}


def run(folder: Path, *arguments: str) -> str:
    said = CliRunner().invoke(ledger.app, [arguments[0], str(folder), *arguments[1:]]).stdout
    return said.replace(str(folder), "example")


def example(folder: Path) -> str:
    """The section: files, commands, what they print."""
    spool, place = folder / "spool", folder / "example"
    files = attempt(spool)
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    parts = [f"`example/{name}`\n```json\n{text.removesuffix(chr(10))}\n```" for name, text in files.items()]
    parts.append(
        f"```\n$ realcli ledger verify example\n{run(place, 'verify')}$ realcli ledger cat example\n{run(place, 'cat')}```"
    )
    segment = place / "ledger" / "000001.jsonl"
    segment.write_text(segment.read_text().replace("echo hello", "echo jello"))
    parts.append("With one letter changed, and with an anchor that is another seal's:")
    anchor = "sha256:" + "1" * 64
    told = (
        f"$ sed -i 's/echo hello/echo jello/' example/ledger/000001.jsonl; realcli ledger verify example\n{run(place, 'verify')}"
    )
    segment.write_text(files["ledger/000001.jsonl"])
    told += f"$ sed -i 's/echo jello/echo hello/' example/ledger/000001.jsonl; realcli ledger verify example --anchor {anchor}\n"
    parts.append(f"```\n{told}{run(place, 'verify', '--anchor', anchor)}```")
    return "\n\n".join(parts)


def kinds() -> str:
    rows = [f"| `{kind}` | {' '.join((cls.__doc__ or '').split(chr(10) * 2)[0].split())} |" for kind, cls in KINDS.items()]
    return "\n".join(["| kind | |", "|---|---|", *rows])


@pytest.mark.parametrize("part", ["kinds", "example"])
def test_the_page_says_what_is(part: str, tmp_path: Path) -> None:
    wanted = kinds() if part == "kinds" else example(tmp_path)
    page = PAGE.read_text()
    marked = re.compile(rf"(<!-- {part} -->\n)(.*?)(<!-- /{part} -->)", re.DOTALL)
    if UPDATE:
        page = marked.sub(lambda found: f"{found[1]}{wanted}\n{found[3]}", page)
        PAGE.write_text(page)
    found = marked.search(page)
    assert found is not None
    assert found[2].rstrip("\n") == wanted, "REALCLI_UPDATE_GOLDEN=1 writes it anew"


def test_the_files_of_the_page_are_an_attempt_that_verifies(tmp_path: Path) -> None:
    """As a reader would try it: from the page alone."""
    for name, text in re.findall(r"`example/(\S+)`\n```json\n(.*?)\n```", PAGE.read_text(), re.DOTALL):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n" * name.endswith(".jsonl"))
    assert "1 of 1 attempts verify" in run(tmp_path, "verify")
    assert "sk-a-real-key" not in PAGE.read_text()
