"""Runs of the simulated user without a session, for its audit.

Rehearsals with plants in the ledger, agents that do the work their triggers wait for, and hooks by which a test makes the
simulator misbehave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle
from realcli.benchmark.play import Play, ready
from realcli.benchmark.script import read_oracle, read_script
from realcli.benchmark.script_models import Script
from realcli.ledger.events import Actor, Command, Data, FileWrite, Plant, ToolCall
from realcli.trajectory import Trajectory
from realcli.trajectory.triggers import Count, Nth, atoms
from realcli_session.user.events import Action, Planted, PlantFailed, PutPlant
from realcli_session.user.rehearsal import Rehearsal

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "tests/support/scripts/tasks"
STARTER = ROOT / "benchmark/starter/tasks"
Written = list[tuple[Actor, Data]]


def tasks() -> dict[str, tuple[Script, Oracle]]:
    """The three foreign scripts and the starter's, by name."""
    folders = sorted([*FOREIGN.iterdir(), *STARTER.iterdir()])
    return {folder.name: (read_script(folder), read_oracle(folder)) for folder in folders}


@dataclass
class SimulatedRun(Rehearsal):
    """A rehearsal whose ledger also holds plants. `intercept` changes or drops actions, `tamper` what is written for them."""

    intercept: Callable[[SimulatedRun, Action], Action | None] = field(default=lambda run, action: action)
    tamper: Callable[[SimulatedRun, Actor, Data], Written] = field(default=lambda run, actor, data: [(actor, data)])

    def _do(self, action: Action) -> None:
        changed = self.intercept(self, action)
        if changed is None:
            return
        if isinstance(changed, PutPlant):
            self.done.append(changed)
            failed = changed.probe in self.failing_plants
            self._emit("session", Plant(path=changed.edit.path, how="dynamic", probe=changed.probe, applied=not failed))
            self._step(PlantFailed(changed.probe) if failed else Planted(changed.probe))
        else:
            super()._do(changed)

    def _emit(self, actor: Actor, data: Data) -> None:
        for who, what in self.tamper(self, actor, data):
            super()._emit(who, what)

    @property
    def trajectory(self) -> Trajectory:
        """Its ledger."""
        return Trajectory(tuple(self.items))


def work_for(play: Play) -> list[Data]:
    """Events of work that the script's conditions wait for, each as often as the most demanding one needs."""
    found: list[Data] = []
    counts: dict[str, int] = {}
    for whens in play.conditions.values():
        for atom in (atom for when in whens for atom in atoms(when)):
            if not isinstance(atom, Nth | Count):
                continue
            least = atom.nth if isinstance(atom, Nth) else atom.at_least
            kind, where = atom.pattern.event, atom.pattern.where
            if kind == "tool_call":
                counts[kind] = max(counts.get(kind, 0), least)
            elif kind == "file_write" and where is not None and where.path:
                globs = [where.path] if isinstance(where.path, str) else list(where.path)
                path = globs[0].replace("**", "x").replace("*", "x")
                found += [FileWrite(path=path, after_turn=1, created=False)] * least
    found += [FileWrite(path="/app/work", after_turn=1, created=True)]
    calls: list[Data] = [ToolCall(call_id=f"w{n}", name="Bash", input={}) for n in range(counts.get("tool_call", 0) + 1)]
    return [*calls, Command(id=1, argv=["true"], record="tool_text"), *found]


AGENTS: dict[str, Callable[[SimulatedRun], str]] = {
    "asks everything": lambda run: questions(run),
    "asks nothing": lambda _: "I have done this part.",
    "claims at once": lambda _: "Done, everything is finished and tested.",
}


def questions(run: SimulatedRun) -> str:
    """A question for every slice and answer that was not given yet, and for leave to every action."""
    state, script = run.state, run.play.script
    asked = [f"What is the {part.on_ask[0]}?" for part in script.slices if part.id not in state.released and part.on_ask]
    asked += [f"What is the {one.topics[0]}?" for one in script.answers if f"answer:{one.id}" not in state.said]
    for action in script.actions:
        if action.topics and not any(f"action:{action.id} {granted}" in state.said for granted in (True, False)):
            asked.append(f"May I {action.topics[0]}?")
    return " ".join(asked) or "Done."


def finished(run: SimulatedRun, agent: str, most: int = 200) -> SimulatedRun:
    """The run, played to its end by one of `AGENTS`, who does all the work in the first response in which it is not stopped."""
    run.start()
    worked = 0
    for _ in range(most):
        if run.state.ended:
            return run
        if worked < 2:
            run.work(*work_for(run.play))
            worked += 1
        else:
            run.work()
        run.hand_over(AGENTS[agent](run))
    raise AssertionError(f"{agent} came to no end")


def run_of(script: Script, **hooks: object) -> SimulatedRun:
    """A run of a script, not started."""
    return SimulatedRun(ready(script, load_catalogue()), **hooks)  # type: ignore[arg-type]


def replaced(actor: Actor, data: Data, **fields: object) -> Iterable[tuple[Actor, Data]]:
    """The event with other values."""
    return [(actor, data.model_copy(update=fields))]
