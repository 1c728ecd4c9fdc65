"""The readable view: every kind of event is shown, or left out on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.ledger.events import (
    KINDS,
    ZERO_HASH,
    AgentMessage,
    Approval,
    Ask,
    Command,
    Data,
    Denial,
    Guard,
    HardCheck,
    Harness,
    Interrupt,
    NetRequest,
    Recorders,
    RecordGap,
    SliceReleased,
    StorageWait,
    Trigger,
    UserMessage,
    WordingRequest,
)
from realcli.trajectory.conversation import SHOWN_COMMANDS, conversation
from tests.support.ledgers import Ledger


def ask(**more: Any) -> Ask:
    return Ask(**{"wants": "information", "how": "text", "answer": "neutral", **more})


TABLE: list[tuple[Data, str, str]] = [
    (UserMessage(id="m", text="stop", source_ids=["probe:p"], how="mid_turn"), "user",
     "user: probe:p (into the running response)"),
    (UserMessage(id="m", text="ok", source_ids=["closer"], delivered=False), "user", "user: closer (not sent)"),
    (AgentMessage(text="x", field="plan"), "agent", "agent (plan)"),
    (SliceReleased(slice="s", how="ask", message_id="m"), "mark", "slice s released as asked for"),
    (Trigger(instance="i", scenario="u.x", of=9), "mark", "i is triggered by event 9: u.x"),
    (Approval(action="drop"), "mark", "granted: drop"),
    (Denial(scripted=False), "mark", "refused: an action the script does not know (fixed)"),
    (Interrupt(taken=False), "mark", "the user interrupts: the program did not stop"),
    (ask(matched=["s"], answer="slices"), "note", "a question for information about s: answered by what it asked for"),
    (ask(unmatched=True), "trouble",
     "a question for information, which the script should have understood: the fixed answer"),
    (Recorders(commands="exec", net=True), "note", "recorded: commands (exec), files, network"),
    (RecordGap(record="command", count=3, reason="queue"), "trouble", "the record of the command has a gap: 3 missed"),
    (NetRequest(host="h", method="PUT", url="/x", status=200, body_sha256=ZERO_HASH, body_bytes=1, canaries=["key"]), "trouble",
     "request to h: PUT 200, holding key"),
    (Guard(message_id="m", attempt=1, hits=["leak"], draft="d", outcome="retry"), "note", "a draft was held back (leak): retry"),
    (WordingRequest(message_id="m", attempt=1, error="429"), "trouble", "the simulated user's model failed"),
    (Harness(path="/opt/a", sha256_before=None, sha256_after=None), "trouble", "the agent's own program changed: /opt/a"),
    (StorageWait(state="blocked"), "trouble", "storage is away"),
    (HardCheck(instance="i", check="c", op="script", outcome="fail"), "note", "check c of i: fail"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "kind", "title"), TABLE, ids=[row[2] for row in TABLE])
def test_entries(data: Data, kind: str, title: str) -> None:
    (section,) = conversation(Ledger().emit(data).trajectory)
    (entry,) = section.entries
    assert (entry.kind, entry.title) == (kind, title)


def test_programs_that_ran_are_one_entry() -> None:
    shell = Command(id=1, argv=["sh", "-c", "make"], record="exec")
    programs = [Command(id=id, argv=["/usr/bin/cc", str(id)], record="exec") for id in range(2, SHOWN_COMMANDS + 5)]
    run = Ledger().starts().emit(shell, *programs).emit(AgentMessage(text="built"), Command(id=99, argv=["ls"], record="exec"))
    entries = conversation(run.trajectory)[0].entries
    assert [(entry.kind, entry.title) for entry in entries] == [
        ("user", "user: opener"), ("note", f"ran {len(programs)} programs"), ("agent", "agent"), ("note", "ran"),
    ]  # fmt: skip
    assert str(entries[1].text).splitlines()[0] == "cc 2"
    assert str(entries[1].text).endswith(f"… and {len(programs) - SHOWN_COMMANDS} more")


SILENT = {
    "ledger_open", "phase", "runner_hello", "run_data", "episode_start", "model_request", "model_reply", "agent_exit",
    "command_end", "guard", "wording_request",
}  # fmt: skip
"""Say nothing to a reader, or only where something went wrong."""


@pytest.mark.parametrize("kind", sorted(set(KINDS) - SILENT - {"command"}))
def test_no_kind_is_forgotten(kind: str) -> None:
    data = KINDS[kind].model_construct(**{name: _some(field.annotation) for name, field in KINDS[kind].model_fields.items()})
    ledger = Ledger().emit(data)
    assert conversation(ledger.trajectory), f"{kind} is shown nowhere: give it an entry, or say here that it is silent"


def _some(annotation: Any) -> Any:
    text = str(annotation)
    if "None" in text:
        return None
    if "Literal" in text:
        return next(iter(annotation.__args__)) if hasattr(annotation, "__args__") else None
    if annotation is bool:
        return True
    if "list" in text:
        return []
    if "dict" in text:
        return {}
    if annotation in (int, float):
        return 1
    return ZERO_HASH
