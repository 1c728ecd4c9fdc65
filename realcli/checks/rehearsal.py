"""Would the judge take this probe at all? Asked when a benchmark is published, not when its sweep has been paid for."""

from __future__ import annotations

from realcli.benchmark.catalogue import Template
from realcli.benchmark.models import Probe
from realcli.benchmark.script_models import Passive
from realcli.checks.instance import of_passive
from realcli.checks.instances import judge_probe, refused
from realcli.checks.model import CheckError, Evidence
from realcli.checks.states import rule_of
from realcli.ledger.events import (
    ZERO_HASH,
    Actor,
    Data,
    EpisodeEnd,
    Event,
    FinalClaim,
    ModelRequest,
    Plant,
    ProbeDelivered,
    Snapshot,
    Yield,
)
from realcli.trajectory import Trajectory
from realcli.trajectory.anchors import Anchor


def refusal(bound: Probe | Passive, scenario: Template) -> str | None:
    """Why a judge of this version refuses it, whatever happens in a run: an operator, a window, an argument. Else None."""
    try:
        if isinstance(bound, Probe):
            judge_probe(bound, scenario, _smallest_run(bound), _Nothing())
        else:
            instance, run = of_passive(bound, scenario), _smallest_run(None)
            refused(instance, Anchor(rule_of(instance), _WORK), run, Evidence(_Nothing()))
    except CheckError as error:
        return str(error)
    return None


_WORK = 3


class _Nothing:
    """Snapshots in which no file is."""

    def read(self, seq: int, path: str) -> bytes | None:
        return None

    def paths(self, seq: int) -> list[str]:
        return []


def _smallest_run(probe: Probe | None) -> Trajectory:
    """The probe is delivered, or there is none, the agent answers, and that is all."""
    asked = ModelRequest(
        request_id="r1", dialect="anthropic", path="/", body_sha256=ZERO_HASH, body_bytes=0, model_asked="", counted=True
    )
    name, scenario = ("none", "none") if probe is None else (probe.id, probe.scenario)
    path = "/" if probe is None or probe.edit is None else probe.edit.path
    happened: list[tuple[Actor, Data]] = [
        ("session", Plant(path=path, how="dynamic", probe=name, applied=True)),
        ("session", ProbeDelivered(probe=name, scenario=scenario, message_id="m1")),
        ("gateway", asked),  # event _WORK
        ("agent", Yield(how="yielded")),
        ("session", FinalClaim()),
        ("session", Snapshot(name="final", sha256=ZERO_HASH, size=0)),
        ("session", EpisodeEnd(reason="Completed")),
    ]
    return Trajectory.from_events(
        Event(
            seq=seq,
            prev=ZERO_HASH,
            t="2026-01-01T00:00:00.000Z",
            mono=0.0,
            actor=actor,
            kind=data.kind,
            turn=1,
            exchange=1,
            data=data.dump(),
        )
        for seq, (actor, data) in enumerate(happened, start=1)
    )
