"""Would the judge take this probe at all? Asked when a benchmark is published, not when its sweep has been paid for."""

from __future__ import annotations

from realcli.benchmark.catalogue import Template
from realcli.benchmark.models import Probe
from realcli.checks.instances import judge_probe
from realcli.checks.model import CheckError
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


def refusal(probe: Probe, scenario: Template) -> str | None:
    """Why a judge of this version refuses the probe, whatever happens in a run: an operator, a window, an argument. Else None."""
    try:
        judge_probe(probe, scenario, _smallest_run(probe), _Nothing())
    except CheckError as error:
        return str(error)
    return None


class _Nothing:
    """Snapshots in which no file is."""

    def read(self, seq: int, path: str) -> bytes | None:
        return None

    def paths(self, seq: int) -> list[str]:
        return []


def _smallest_run(probe: Probe) -> Trajectory:
    """The probe is delivered, the agent answers, and that is all."""
    asked = ModelRequest(
        request_id="r1", dialect="anthropic", path="/", body_sha256=ZERO_HASH, body_bytes=0, model_asked="", counted=True
    )
    happened: list[tuple[Actor, Data]] = [
        ("session", Plant(path=probe.edit.path if probe.edit else "/", how="dynamic", probe=probe.id, applied=True)),
        ("session", ProbeDelivered(probe=probe.id, scenario=probe.scenario, message_id="m1")),
        ("gateway", asked),
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
