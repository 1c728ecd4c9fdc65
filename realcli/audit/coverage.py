"""sim_probe_coverage: every probe whose trigger fired was delivered completely, once, in its window, and none was made up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.audit.licence import Licensed
from realcli.audit.model import Deviation, SimCheck
from realcli.audit.replay import GivenUp
from realcli.audit.view import View, sim_check
from realcli.benchmark.script import PROBE
from realcli.ledger.events import Plant, Trigger

NAME: Final = "sim_probe_coverage"


def check(view: View) -> SimCheck:
    """Trigger log against delivery log, plants, counts, distances, one item per message."""
    found: list[Deviation] = []
    for licensed in view.licensed:
        found += _order(view, licensed)
        found += _deliveries(view, licensed)
        found += _wording(view, licensed)
    found += [one for given_up in view.run.given_up for one in _given_up(view, given_up)]
    found += _at_the_end(view)
    found += _claims(view)
    found += _observed(view)
    for seq, kind, name in view.run.loose:
        if kind == "probe_delivered":
            what = f"the delivery of probe {name} names no message: its window is made up"
            found.append(Deviation(seq=seq, what=what, affected=view.reach.of_probe(name), harmful=True))
    posed = [one.said for one in view.open if one.said.probes]
    return sim_check(NAME, found, open_=posed, na=None if _anything_fired(view) else "no trigger fired")


def _anything_fired(view: View) -> bool:
    return bool(view.run.end.delivered) or any(
        view.run.end.fired(name) for name in view.play.conditions if name.startswith((PROBE, "passive:"))
    )


def _probe(view: View, seq: int | None, name: str, what: str, quote: str | None = None) -> Deviation:
    return Deviation(seq=seq, what=what, quote=quote, affected=view.reach.of_probe(name), harmful=True)


def _order(view: View, licensed: Licensed) -> Iterator[Deviation]:
    said = licensed.said
    for breach in licensed.breaches:
        if breach.source.startswith(PROBE):
            name = breach.source.removeprefix(PROBE)
            yield _probe(view, said.seq, name, f"{said.data.id}: probe {name}: {breach.why}")
    if len(set(said.probes)) > 1:
        for name in dict.fromkeys(said.probes):
            yield _probe(view, said.seq, name, f"{said.data.id} says {len(set(said.probes))} probes at once")


def _deliveries(view: View, licensed: Licensed) -> Iterator[Deviation]:
    """A delivery stands for the message that says the probe's first part, and once."""
    said = licensed.said
    logged = [data.probe for _, data in said.deliveries]
    first = [name for name in said.probes if name not in said.stand.delivered]
    for seq, data in said.deliveries:
        if data.probe not in first:
            how = "again" if data.probe in said.stand.delivered else "although the message does not say it: its window is made up"
            yield _probe(view, seq, data.probe, f"{said.data.id}: probe {data.probe} is delivered {how}")
    for name in first:
        if logged.count(name) != 1:
            how = "not in the ledger" if name not in logged else f"there {logged.count(name)} times"
            yield _probe(view, said.seq, name, f"{said.data.id}: the delivery of probe {name} is {how}")
        edit = view.play.probes[name].probe.edit
        if edit is not None:
            yield from _planted(view, said.seq, name, edit.path)


def _planted(view: View, seq: int, name: str, path: str) -> Iterator[Deviation]:
    mine = [data for at, data in view.run.plants if at < seq and data.probe == name and data.how == "dynamic"]
    if not any(_in_place(data, path) for data in mine):
        yield _probe(view, seq, name, f"probe {name} was said although its plant in {path} was not in place")


def _in_place(data: Plant, path: str) -> bool:
    return data.applied and data.path == path and (data.sha256_after is None or data.sha256_after != data.sha256_before)


def _wording(view: View, licensed: Licensed) -> Iterator[Deviation]:
    """A probe whose fixed parts are lost does not pose what it should."""
    said = licensed.said
    wording = view.wordings[view.run.said.index(said)]
    for altered in wording.altered:
        if altered.piece.kind == "probe" and (altered.keys or altered.quote is None) and not altered.settled:
            name = altered.piece.name
            yield _probe(view, said.seq, name, f"{said.data.id}: probe {name} is not complete: {altered.change}", altered.quote)


def _given_up(view: View, given_up: GivenUp) -> Iterator[Deviation]:
    """The reason holds: a probe that was due is not given up."""
    data, stand, seq = given_up.data, given_up.stand, given_up.seq
    name, run = data.probe, view.run
    played = view.play.probes[name]
    if data.reason == "cut":
        if run.claim is not None or name not in stand.delivered:
            yield _probe(view, seq, name, f"probe {name} is said to be cut, and was not")
        return
    if data.reason == "probe_undelivered":
        failed = any(plant.probe == name and not plant.applied for at, plant in run.plants if at < seq)
        halfway = name in stand.delivered and stand.parts is not None and stand.parts[0] == name and not given_up.followed
        if not (failed or halfway):
            yield _probe(view, seq, name, f"probe {name} is said to be undelivered, and nothing kept it back")
        return
    if name in stand.delivered:
        yield _probe(view, seq, name, f"probe {name} is given up ({data.reason}) although it was delivered")
    elif given_up.followed and played.delivery == "at_yield":
        if stand.holds(PROBE + name):
            yield _probe(view, seq, name, f"probe {name} was due, and given up ({data.reason})")
        elif played.fallback and stand.spaced(PROBE + name):
            yield _probe(view, seq, name, f"probe {name} could have answered the claim, and was given up ({data.reason})")
        elif data.reason == "distance" and not stand.far(PROBE + name):
            yield _probe(view, seq, name, f"probe {name} is said to lack distance, and does not")
        else:
            due = given_up.alone.due()
            if due is not None:
                yield _probe(view, seq, name, f"probe {name} was given up while {', '.join(due.sources)} was due")
    elif data.reason in ("capability", "distance") and not stand.holds(PROBE + name):
        yield _probe(view, seq, name, f"the trigger of probe {name} had not fired, and it is given up ({data.reason})")
    elif given_up.followed and data.reason == "not_reached" and stand.holds(PROBE + name):
        yield _probe(view, seq, name, f"the trigger of probe {name} had fired, and it is said to be not reached")


def _at_the_end(view: View) -> Iterator[Deviation]:
    """Where the run was complete, every probe was delivered in full or given up."""
    if view.run.claim is None:
        return
    seq, _, stand = view.run.claim
    for name in stand.waiting:
        yield _probe(view, seq, name, f"the final claim was accepted although probe {name} was to come")
    if stand.parts is not None:
        yield _probe(view, seq, stand.parts[0], f"the final claim was accepted although a part of {stand.parts[0]} was to come")


def _claims(view: View) -> Iterator[Deviation]:
    """Interim claims are where they belong, with the right counts: triggers wait for them."""
    waiting = view.reach.on_claim("interim_claim")
    for seq, data, stand in view.run.interims:
        counts = len(stand.mandatory), len(stand.waiting) + (stand.parts is not None)
        if (data.slices_pending, data.probes_pending) != counts or not stand.open:
            what = f"an interim claim with {data.slices_pending} slices and {data.probes_pending} probes to come; it was {counts}"
            yield Deviation(seq=seq, what=what, affected=waiting, harmful=True)
    for licensed in view.licensed:
        over = licensed.said.answers
        if over is None or over.how != "yielded" or over.asks or over.interim is not None or not licensed.said.stand.open:
            continue
        what = f"the hand-over before {licensed.said.data.id} was an interim claim and is not in the ledger"
        yield Deviation(seq=over.seq, what=what, affected=waiting, harmful=True)


def _observed(view: View) -> Iterator[Deviation]:
    """Triggers of passive instances stand where the same rule finds them."""
    told: dict[str, list[tuple[int, int]]] = {}
    for event, data in view.trajectory.of(Trigger):
        told.setdefault(data.instance, []).append((event.seq, data.of))
    for passive in view.script.passive:
        name, (state,) = passive.name, view.run.end.watched[f"passive:{passive.name}"]
        seen = told.get(name, [])
        if seen and [of for _, of in seen] != [state.fired]:
            where = "nowhere" if state.fired is None else f"at event {state.fired}"
            what = f"{name} is told to be triggered at event {', '.join(str(of) for _, of in seen)}; the rule finds it {where}"
            yield Deviation(seq=seen[0][0], what=what, affected=[name], harmful=True)
        elif not seen and state.fired is not None and state.doubtful is None and view.run.claim is not None:
            what = f"{name} was triggered at event {state.fired}, which is not in the ledger"
            yield Deviation(seq=state.fired, what=what, affected=[name], harmful=True)
