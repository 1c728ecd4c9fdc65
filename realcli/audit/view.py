"""What the seven checks share: the run as it was read, licences, wordings, reach, and what may be known at a message. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue, TypeAdapter

from realcli.audit.licence import Licensed, licences
from realcli.audit.model import Deviation, SimCheck, SimName
from realcli.audit.reach import Reach
from realcli.audit.replay import Replay, Said, replay
from realcli.audit.wording import Wording, wording_of
from realcli.benchmark.catalogue_models import Catalogue
from realcli.benchmark.models import Oracle
from realcli.benchmark.play import Play, ready
from realcli.benchmark.script_models import Probe, Script
from realcli.checks.instance import Instance
from realcli.ledger.base import BlobRef, Json
from realcli.trajectory import Blobs, NoBlobs, Trajectory

JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@dataclass(frozen=True)
class View:
    """One COLLAB run under audit."""

    play: Play
    oracle: Oracle
    catalogue: Catalogue
    trajectory: Trajectory
    run: Replay
    reach: Reach
    blobs: Blobs
    traps: frozenset[str] | None  # paths of static plants; None: not given

    @cached_property
    def licensed(self) -> list[Licensed]:
        """Every message with what is wrong with its order."""
        return licences(self.run)

    @cached_property
    def wordings(self) -> list[Wording]:
        """Every message against its canonical texts."""
        return [wording_of(said) for said in self.run.said]

    @property
    def open(self) -> list[Wording]:
        """Messages a program cannot settle: reworded by a model, or not to be read."""
        return [one for one in self.wordings if one.open or one.unread]

    def json_of(self, value: Json) -> JsonValue:
        """A JSON value of the ledger, wherever it lies; None where it cannot be had."""
        if not isinstance(value, BlobRef):
            return value
        data = self.blobs.read(value)
        try:
            return None if data is None else JSON.validate_json(data)
        except ValueError:
            return None

    @property
    def script(self) -> Script:
        """The script."""
        return self.play.script

    @cached_property
    def script_texts(self) -> str:
        """Everything the user may know by the script."""
        script = self.script
        texts = [script.persona, script.opener, script.closer, *script.user_knows, *(part.text for part in script.slices)]
        texts += [text for probe in script.probes for text in texts_of(probe)]
        texts += [answer.text for answer in script.answers] + [action.text for action in script.actions]
        return "\n".join(texts)

    def outcome_of_slice(self, name: str) -> bool:
        """The slice carries a requirement, so what was said of it may have changed the outcome."""
        return bool(self.play.slices[name].requirements)


def view_of(
    trajectory: Trajectory,
    script: Script,
    oracle: Oracle,
    catalogue: Catalogue,
    instances: Collection[Instance],
    blobs: Blobs | None = None,
    traps: Collection[str] | None = None,
) -> View:
    """Read a run for the audit. BenchmarkError for a script that cannot be played."""
    play = ready(script, catalogue)
    return View(
        play, oracle, catalogue, trajectory, replay(play, trajectory, blobs), Reach(tuple(instances), trajectory, blobs),
        blobs or NoBlobs(), None if traps is None else frozenset(traps),
    )  # fmt: skip


def texts_of(probe: Probe) -> Iterator[str]:
    """Everything the user says for a probe."""
    yield probe.text
    yield from probe.parts
    if probe.closure is not None:
        yield probe.closure.text
        if probe.closure.told is not None and probe.closure.told.text:
            yield probe.closure.told.text


def sim_check(name: SimName, deviations: list[Deviation], *, open_: list[Said], na: str | None = None) -> SimCheck:
    """The program's record: 0 by what it found, unscored by what only a judge can tell, else 1."""
    if na is not None and not deviations:
        return SimCheck(check=name, verdict="n/a", by="program", reason=na)
    if deviations:
        more = f" (and {len(deviations) - 1} more)" if len(deviations) > 1 else ""
        return SimCheck(check=name, verdict="0", by="program", reason=deviations[0].what + more, deviations=deviations)
    if open_:
        named = ", ".join(said.data.id for said in open_[:10]) + (" …" if len(open_) > 10 else "")
        return SimCheck(
            check=name, verdict="unscored", by="none", reason=f"only a judge can tell whether the meaning of {named} is kept"
        )
    return SimCheck(check=name, verdict="1", by="program")
