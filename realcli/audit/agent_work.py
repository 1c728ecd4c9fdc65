"""sim_no_agent_work: the user does none of the agent's work and touches nothing but scripted plants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.audit.model import Deviation, SimCheck
from realcli.audit.texts import paths, work_in
from realcli.audit.view import View, sim_check
from realcli.audit.wording import Wording

NAME: Final = "sim_no_agent_work"


def check(view: View) -> SimCheck:
    """Code and commands that the script has not, and plants."""
    found = [one for wording in view.wordings if not wording.verbatim for one in _work(view, wording)]
    found += _plants(view)
    for event in view.run.by_user:
        what = f"the user did something in the environment: {event.kind}"
        found.append(Deviation(seq=event.seq, what=what, affected=view.reach.at(event.seq), outcome=True, harmful=True))
    return sim_check(NAME, found, open_=[one.said for one in view.open])


def _work(view: View, wording: Wording) -> Iterator[Deviation]:
    said = wording.said
    text = said.text or ""
    given = sorted(work_in(text) - work_in(wording.canonical))
    if not given:
        return
    about = view.reach.about(paths(text), text)
    here = view.reach.at(said.seq)
    affected = [id for id in here if id in about] or here
    what = f"{said.data.id}: gives {', '.join(repr(one) for one in given)}, which the script does not hold"
    yield Deviation(seq=said.seq, what=what, quote=text, affected=view.reach.ordered(affected), outcome=True, harmful=True)


def _plants(view: View) -> Iterator[Deviation]:
    first = view.run.said[0].seq if view.run.said else None
    done: set[str] = set()
    for seq, plant in view.run.plants:
        what = None
        if plant.how == "static":
            if first is not None and seq > first:
                what = f"{plant.path} was planted in the middle of the run"
            elif view.traps is not None and plant.path not in view.traps:
                what = f"{plant.path} was planted, which is none of the task's traps"
        else:
            played = view.play.probes.get(plant.probe or "")
            edit = played.probe.edit if played is not None else None
            if edit is None or edit.path != plant.path:
                what = f"{plant.path} was edited, which no probe of the script does"
            elif plant.applied and plant.probe in done:
                what = f"{plant.path} was edited twice for probe {plant.probe}"
            done |= {plant.probe or ""} if plant.applied else set()
        if what is not None:
            affected = view.reach.ordered([*view.reach.about([plant.path], ""), *view.reach.of_probe(plant.probe or "")])
            yield Deviation(seq=seq, what=what, affected=affected, outcome=True, harmful=True)
