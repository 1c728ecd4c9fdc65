"""What version 0.1.0 wrote, read by this one: a sweep that ran while the operator was upgraded, and evidence in storage.

`tests/data/v0.1.0`: written by the programs of that tag. `objects.json`: sweep, Trials, plan line, a judge Job's input;
`store/`: lock and two sealed attempts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.plan import Lock, Plan, decode_plan, encode_plan
from realcli.ledger.reader import StoreReader, attempts_below
from realcli.ledger.verify import verify_attempt
from realcli.scoring.records import GroupInput
from realcli.storage.local import LocalStore
from realcli.storage.paths import SweepPaths
from realcli_operator.kube.project import sweep_view, trial_view
from realcli_operator.kube.views import TrialView
from realcli_operator.pods.jobs import PLAN_KEY, plan_config_map, trial_manifest
from realcli_operator.pods.parts import SweepContext
from realcli_operator.pods.trial import trial_pod
from realcli_operator.reconcile.facts import SweepFacts, TrialFacts, sweep_spec, sweep_status, trial_spec, trial_status
from realcli_operator.reconcile.plans import PodIntent
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.sweep import decide_sweep
from realcli_operator.reconcile.trial import decide_trial

DATA = Path(__file__).parents[2] / "data" / "v0.1.0"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def old() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "objects.json").read_text())
    return found


@pytest.fixture
def plan(old: Mapping[str, Any]) -> Plan:
    return decode_plan(old["planLine"], old["sweep"]["status"]["planDigest"])


def the_sweep(old: Mapping[str, Any], plan: Plan) -> SweepFacts:
    sweep = old["sweep"]
    metadata = {key: sweep[key] for key in ("namespace", "name", "uid")} | {"resourceVersion": "1", "generation": 1}
    view = sweep_view({"metadata": metadata, "spec": sweep["spec"], "status": sweep["status"]})
    trials = tuple(the_trial(old, number) for number in range(len(old["trials"])))
    return SweepFacts(sweep=view, spec=sweep_spec(view), status=sweep_status(view), plan=plan, rows=Rows(trials))


def the_trial(old: Mapping[str, Any], number: int) -> TrialView:
    owner = {"controller": True, "name": old["sweep"]["name"], "uid": old["sweep"]["uid"]}
    metadata = {"namespace": "audits", "name": f"first-{number:05d}", "uid": f"uid-{number}", "resourceVersion": "1"}
    return trial_view({"metadata": metadata | {"ownerReferences": [owner]}} | old["trials"][number])


def context(facts: SweepFacts, plan: Plan) -> SweepContext:
    return SweepContext("audits", "first", facts.sweep.uid, facts.spec, plan.platform, plan=plan)


def test_its_plan_keeps_its_digest(old: Mapping[str, Any], plan: Plan) -> None:
    """A digest that moved would make the plan unreadable at the operator's next start."""
    digest = old["sweep"]["status"]["planDigest"]
    assert plan.content_digest() == digest
    assert decode_plan(encode_plan(plan), digest) == plan
    facts = the_sweep(old, plan)
    step = decide_sweep(facts, NOW)
    assert step.status is None or step.status.plan_digest == digest
    assert trial_manifest(context(facts, plan), 1)["spec"] == old["trials"][1]["spec"]
    assert decode_plan(plan_config_map(context(facts, plan), plan)["data"][PLAN_KEY], digest) == plan


def test_its_sweep_goes_on(old: Mapping[str, Any], plan: Plan) -> None:
    facts = the_sweep(old, plan)
    assert facts.status.counts.sealed == 0
    step = decide_sweep(facts, NOW)
    assert step.grants == {"first-00001"}
    assert step.status is not None
    assert (step.status.state, step.status.counts.sealed) == ("Running", 1)
    trial = facts.rows[1].view
    granted = TrialFacts(
        trial=trial, spec=trial_spec(trial), status=trial_status(trial), pods=(), sweep=facts.spec, plan=plan, granted=True
    )
    assert decide_trial(granted, NOW).create == PodIntent(1)


@pytest.mark.parametrize("intent", [PodIntent(1), PodIntent(1, 1)], ids=["work", "verify"])
def test_its_images_are_started_as_they_can_be(old: Mapping[str, Any], plan: Plan, intent: PodIntent) -> None:
    """The pods of a planned sweep are made of the images it was planned with; that toolkit has no bin/clean."""
    facts = the_sweep(old, plan)
    trial = facts.rows[1].view
    pod = trial_pod(context(facts, plan), trial_spec(trial), trial.name, trial.uid, intent)
    untrusted, session = pod["spec"]["containers"]
    assert session["image"] == "session:0.1.0"
    assert untrusted["command"][:2] == ["/opt/realcli/lib/ld-linux-x86-64.so.2", "--argv0"]
    assert "--no-exec-record" not in untrusted["command"]


def test_its_judge_input_is_read(old: Mapping[str, Any]) -> None:
    group = GroupInput.model_validate(old["group"])
    assert [member.reward for member in group.members] == ["1", "1"]
    assert group.dump() == old["group"]  # so the judge of that version reads ours


def test_its_evidence_verifies_and_is_read(old: Mapping[str, Any]) -> None:
    store = LocalStore(DATA / "store")
    roots = attempts_below(store, "")
    assert len(roots) == 2
    for root, trial in zip(roots, old["trials"], strict=True):
        status = trial["status"]
        reader = StoreReader(store, root)
        report = verify_attempt(reader, root, status.get("workSealDigest"), status.get("sealDigest"))
        assert report.findings == []
        events = list(reader.events())
        assert len(events) == report.events
        assert all(event.typed() is not None for event in events)


def test_its_lock_is_read(old: Mapping[str, Any], plan: Plan) -> None:
    stored = LocalStore(DATA / "store").get(SweepPaths(plan.root).lock)
    assert sha256_digest(stored) == plan.lock_digest
    lock = Lock.model_validate_json(stored)
    (configuration,) = lock.configurations
    assert (configuration.api, configuration.resolved_model, configuration.setup) == ("anthropic", None, None)
    assert lock.spec.limits.spool_hold == "24h"
