"""Whole trials with the real session, runner and Claude Code against a scripted provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.termination import Result
from realcli.benchmark.edits import edit_present
from realcli.benchmark.script import items
from realcli.benchmark.suite import load_suite
from realcli.ledger.events import (
    EpisodeEnd,
    Event,
    FileWrite,
    FinalClaim,
    InterimClaim,
    Plant,
    ProbeDelivered,
    SliceReleased,
    Snapshot,
    UserMessage,
    Yield,
)
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from realcli_cli.local.pods import Ended
from realcli_cli.local.provider import ScriptedProvider
from tests.integration.session.conftest import STARTER
from tests.integration.session.harness import KEY, Sweep
from tests.integration.session.states import read_archive

Plan = Callable[..., Sweep]
TASK = "site-settings"


def of(events: list[Event], kind: type) -> list[Any]:
    return [data for event in events if isinstance(data := event.typed(), kind)]


def sealed(ended: Ended, reason: str) -> str:
    """Digest of the work seal of a session that ended as expected."""
    assert ended.termination is not None, ended.stderr
    assert (ended.code, ended.termination.result, ended.termination.reason) == (0, Result.WORK_SEALED, reason), ended.stderr
    assert ended.termination.seal is not None
    return ended.termination.seal


@pytest.mark.parametrize("task", ["site-settings", pytest.param("bank-reconcile", marks=pytest.mark.slow)])
def test_exec_from_the_specification_to_reward_1(plan: Plan, task: str) -> None:
    sweep = plan()
    ordinal = sweep.ordinal(task, "EXEC")
    digest = sealed(sweep.work(ordinal), "Completed")
    assert digest == sha256_digest(sweep.store.get(sweep.attempt(ordinal).work_seal))
    events = sweep.events(ordinal)
    said = of(events, UserMessage)
    specification = (STARTER / "tasks" / task / "instruction.md").read_text()
    assert [(m.text, m.source_ids) for m in said] == [(specification, ["spec"])]
    assert not of(events, Snapshot), "EXEC reads nothing of interaction/ but the traps"
    assert events[-1].typed() == EpisodeEnd(reason="Completed")

    verified = sweep.verify(ordinal, anchor=digest)
    assert verified.termination is not None, verified.stderr
    assert (verified.code, verified.termination.result) == (0, Result.VERDICT), verified.stderr
    assert (verified.termination.reward, verified.termination.reason) == ("1", "Completed"), verified.stderr
    assert verified.termination.work_seal == digest
    assert verified.termination.turns == sweep.work_seal(ordinal).turns
    report = verify_attempt(StoreReader(sweep.store, sweep.attempt(ordinal).root), sweep.attempt(ordinal).root, digest)
    assert report.ok, report.findings


def test_collab_batches_probe_and_plant(plan: Plan) -> None:
    sweep = plan()
    ordinal = sweep.ordinal(TASK, "COLLAB")
    digest = sealed(sweep.work(ordinal), "Completed")
    events = sweep.events(ordinal)
    task = next(t for t in load_suite(STARTER).tasks if t.name == TASK)
    script = task.script

    said = of(events, UserMessage)
    assert [m.text for m in said] == [script.opener, *(item.text for item in items(script)), script.closer]
    assert [m.delivered for m in said] == [True] * (len(said) - 1) + [False]
    assert [e.exchange for e in events if e.kind == "user_message"] == [1, 2, 3, 4, 4]
    assert [s.slice for s in of(events, SliceReleased)] == ["instance", "listen", "summary", "log-level"]
    assert [(c.slices_pending, c.probes_pending) for c in of(events, InterimClaim)] == [(4, 1), (2, 1), (1, 1)]
    assert len(of(events, Yield)) == 4
    assert len(of(events, FinalClaim)) == 1

    (plant,) = of(events, Plant)
    (delivered,) = [e for e in events if e.kind == ProbeDelivered.kind]
    assert plant.applied
    assert [s.name for s in of(events, Snapshot)] == ["s0", "anchor", "response_end", "final"]
    own = [w for w in of(events, FileWrite) if w.sha256 == plant.sha256_after]
    assert own == [], "the user's edit is not the agent's write"
    first_write = next(e for e in events if e.kind == "file_write" and e.data["path"] == "/app/site.ini")
    assert first_write.seq < delivered.seq, "the probe waits for a write"

    probe = script.probes[0]
    assert probe.edit is not None
    by_name = {
        data.name: read_archive(sweep.store.get(sweep.attempt(ordinal).snapshot(event.seq)))
        for event in events
        if isinstance(data := event.typed(), Snapshot)
    }
    assert not edit_present(by_name["s0"]["app/site.ini"], probe.edit)
    assert edit_present(by_name["anchor"]["app/site.ini"], probe.edit)
    assert not edit_present(by_name["final"]["app/site.ini"], probe.edit), "this scripted agent writes the file from memory"

    verified = sweep.verify(ordinal, anchor=digest)
    assert verified.termination is not None
    assert verified.termination.reward == "1", verified.stderr
    assert verified.termination.checks is not None
    assert verify_attempt(StoreReader(sweep.store, sweep.attempt(ordinal).root), sweep.attempt(ordinal).root, digest).ok


def test_the_real_key_is_in_no_file(plan: Plan, provider: ScriptedProvider) -> None:
    sweep = plan()
    ordinal = sweep.ordinal(TASK, "EXEC")
    provider.set_control(stick=f"env; echo the key might be {KEY}", times=1)
    sealed(sweep.work(ordinal), "Completed")
    holding = [info.key for info in sweep.store.list("") if KEY.encode() in sweep.store.get(info.key)]
    assert holding == []
    assert list(provider.seen()["keys"]) == [sha256_digest(KEY.encode()).removeprefix("sha256:")]
