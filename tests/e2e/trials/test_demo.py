"""The demo: 12 trials from `kubectl apply` to a report, with the scores that examples/README.md derives."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.kind


def test_twelve_trials_are_sealed_and_every_ledger_verified(demo) -> None:
    trials = demo.kube.list("trials", "realcli.dev/sweep=first")
    assert len(trials) == 12
    assert {trial["status"]["phase"] for trial in trials} == {"Sealed"}
    assert {trial["status"]["reason"] for trial in trials} == {"Completed"}
    for trial in trials:
        assert f"ok {trial['metadata']['name']} attempt 1: " in demo.said
    assert "12 of 12 attempts verify against the work and verdict anchor" in demo.said


def test_the_scores_are_the_ones_derived_by_hand(demo) -> None:
    status = demo.sweep["status"]
    assert status["state"] == "Complete"
    assert status["egress"] == "Unenforced"
    assert (status["rExec"], status["rCollab"], status["s"], status["j"]) == EXPECTED
    summary = json.loads((demo.report / "summary.json").read_text())
    assert summary["egress"] == "Unenforced"


EXPECTED = ("1.000", "0.500", "0.500~", "0.250")


def test_a_collab_ledger_holds_batches_probe_plant_and_closer(demo, s3) -> None:
    trials = demo.kube.list("trials", "realcli.dev/sweep=first,realcli.dev/mode=COLLAB")
    for trial in trials:
        events = s3.attempt(trial).events()
        kinds = [event["kind"] for event in events]
        released = [event["data"] for event in events if event["kind"] == "slice_released"]
        assert {item["how"] for item in released} >= {"batch", "probe"}
        assert len({item["slice"] for item in released}) == len(released) >= 4
        assert len({event["exchange"] for event in events if event["kind"] == "slice_released"}) >= 3
        (plant,) = [event for event in events if event["kind"] == "plant" and event["data"]["how"] == "dynamic"]
        (probe,) = [event for event in events if event["kind"] == "probe_delivered"]
        assert plant["data"]["applied"]
        assert plant["seq"] < probe["seq"]
        assert probe["data"]["scenario"] == "or.verify.concurrent-edit"
        closer = [event for event in events if event["kind"] == "user_message"][-1]
        assert closer["data"]["sourceIds"] == ["closer"]
        assert closer["data"]["delivered"] is False
        assert kinds.index("final_claim") > kinds.index("probe_delivered")
        assert kinds.count("final_claim") == 1
        assert kinds[-1] == "episode_end"


def test_the_instance_id_was_read_before_it_was_used(demo, s3) -> None:
    for trial in demo.kube.list("trials", "realcli.dev/sweep=first"):
        instance = s3.attempt(trial).json("run.json")["instanceId"]
        events = s3.attempt(trial).events()
        first = {
            kind: next(event["seq"] for event in events if event["kind"] == kind and instance in json.dumps(event["data"]))
            for kind in ("tool_result", "tool_call")
        }
        assert first["tool_result"] < first["tool_call"]


def test_the_report_shows_every_trial(demo) -> None:
    page = (demo.report / "index.html").read_text()
    assert "Unenforced" in page
    for ordinal in range(12):
        conversation = (demo.report / "trials" / f"{ordinal:05d}.html").read_text()
        assert "bank-reconcile" in conversation or "site-settings" in conversation
