"""Runs of the shop's script in which some messages have other words: a model's, or a fault of the script's own."""

from __future__ import annotations

import json
from collections.abc import Callable

from realcli.audit.view import View, view_of
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.instance import instances_of
from realcli.ledger.events import Actor, Data, Guard, UserMessage
from tests.support.shop_script import shop
from tests.support.simulated_runs import SimulatedRun, Written, finished, run_of


def worded(texts: dict[str, str], by: str = "model") -> Callable[[SimulatedRun, Actor, Data], Written]:
    """These messages have these texts; a model's passed its guards."""

    def tamper(run: SimulatedRun, actor: Actor, data: Data) -> Written:
        if not isinstance(data, UserMessage) or data.id not in texts:
            return [(actor, data)]
        text = texts[data.id]
        guard = Guard(message_id=data.id, attempt=1, hits=[], draft=json.dumps({"text": text}), outcome="sent")
        return [("session", guard), (actor, data.model_copy(update={"text": text, "worded_by": by}))]

    return tamper


def worded_run(texts: dict[str, str], by: str = "model") -> View:
    """A finished run (agent: asks nothing), read for the audit."""
    script, oracle = shop()
    catalogue = load_catalogue()
    run = finished(run_of(script, tamper=worded(texts, by)), "asks nothing")
    return view_of(run.trajectory, script, oracle, catalogue, instances_of(script, catalogue))
