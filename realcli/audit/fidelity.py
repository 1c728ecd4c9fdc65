"""sim_script_fidelity: every message is licensed by the script and says what its sources say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.audit.licence import Breach
from realcli.audit.model import Deviation, SimCheck
from realcli.audit.pieces import FIXED, Piece
from realcli.audit.replay import Decision, Prompted, Said, slices_said
from realcli.audit.view import View, sim_check
from realcli.audit.wording import Altered, passed_a_guard
from realcli.ledger.events import Approval
from realcli.trajectory.patterns import path_matches, search
from realcli.trajectory.prompts import commands_in, paths_in

NAME: Final = "sim_script_fidelity"


def check(view: View) -> SimCheck:
    """Licences, wording, decisions, the log of releases, the final claim."""
    found: list[Deviation] = []
    for licensed, wording in zip(view.licensed, view.wordings, strict=True):
        said = licensed.said
        breaches = [
            one for one in licensed.breaches if one.kind in ("unlicensed", "held_back") and one.source not in said.unknown
        ]
        found += [_breach(view, said, one) for one in breaches]
        found += _sources(said)
        found += [_altered(view, said, one) for one in wording.altered]
        found += _added(said, [one.text for one in wording.added], worded_by_model=wording.open)
        found += _decisions(view, said)
        found += _releases(view, said)
        if said.data.worded_by == "model" and passed_a_guard(said, view.run, view.blobs) is False:
            what = f"{said.data.id} is neither the script's text nor a draft that passed the guards"
            found.append(Deviation(seq=said.seq, what=what, affected=affected_by(view, said.pieces), harmful=None))
    found += [Deviation(seq=seq, what="a hand-over got no message", harmful=None) for seq in view.run.unanswered]
    found += _stops(view)
    found += _claim(view)
    found += [one for prompted in view.run.prompts for one in _prompt(view, prompted)]
    found += _loose(view)
    na = None if len(view.run.said) > 1 or view.run.closer else "no message of the user after the opener"
    return sim_check(NAME, found, open_=[one.said for one in view.open], na=na)


def affected_by(view: View, pieces: tuple[Piece, ...]) -> list[str]:
    """Instances whose slice or probe one of the pieces is."""
    reach, found = view.reach, list[str]()
    for piece in pieces:
        for source in piece.sources:
            found += affected_by_source(view, source)
    return reach.ordered(found)


def affected_by_source(view: View, source: str) -> list[str]:
    """Instances that rest on what a source says."""
    reach = view.reach
    kind, _, name = source.partition(":")
    match kind:
        case "slice":
            return reach.of_slices([name])
        case "probe" | "closure":
            return reach.of_probe(name)
        case "opener":
            return reach.of_opener()
        case "action":
            return reach.of_action(name)
        case "refusal":
            return reach.of_action(None)
        case "answer" | "neutral" | "later":
            return reach.clarification
    return []


def _breach(view: View, said: Said, breach: Breach) -> Deviation:
    kind, _, name = breach.source.partition(":")
    outcome = kind == "opener" or (kind == "slice" and name in view.play.slices and view.outcome_of_slice(name))
    return Deviation(
        seq=said.seq,
        what=f"{said.data.id}: {breach.source}: {breach.why}",
        affected=view.reach.ordered(affected_by_source(view, breach.source)),
        outcome=outcome and breach.kind == "unlicensed",
        harmful=None if breach.source in FIXED else True,
    )


def _sources(said: Said) -> Iterator[Deviation]:
    if not said.data.source_ids:
        yield Deviation(seq=said.seq, what=f"{said.data.id} names no source", quote=said.text, harmful=None)
    for source in said.unknown:
        yield Deviation(seq=said.seq, what=f"{said.data.id}: {source} is no source of the script", harmful=None)


def _altered(view: View, said: Said, altered: Altered) -> Deviation:
    piece = altered.piece
    slices = [source[6:] for source in piece.sources if source.startswith("slice:") and source[6:] in view.play.slices]
    fixes = piece.kind == "opener" or any(view.outcome_of_slice(name) for name in slices)
    return Deviation(
        seq=said.seq,
        what=f"{said.data.id}: {' '.join(piece.sources)}: {altered.change}",
        quote=altered.quote,
        affected=[] if altered.settled else affected_by(view, (piece,)),
        outcome=fixes and not altered.settled,
        harmful=False if altered.settled else True if altered.keys else None,
    )


def _added(said: Said, texts: list[str], *, worded_by_model: bool) -> Iterator[Deviation]:
    """A text of the script has nothing beside it. What a model says beside is for the judge, or for the checks of its content."""
    if worded_by_model:
        return
    for text in texts:
        yield Deviation(seq=said.seq, what=f"{said.data.id}: says what no source licenses", quote=text, harmful=None)


def _decisions(view: View, said: Said) -> Iterator[Deviation]:
    """Approvals and denials are those its sources and its probe give."""
    read = said.answers.before if said.answers is not None and said.answers.before is not None else said.stand
    expected: set[tuple[str | None, bool]] = {
        (name, read.granted(name))
        for source in said.data.source_ids
        if source.startswith("action:") and (name := source.removeprefix("action:")) in view.play.actions
    }
    for name in said.probes:
        approves = view.play.probes[name].probe.approves
        first = name in said.stand.waiting or view.play.probes[name].delivery == "opener"
        expected |= {(approves, True)} if approves and first else set()
    expected |= {(None, False)} if "refusal" in said.data.source_ids else set()
    yield from _wrong(view, said.data.id, said.decisions, expected, said.seq)


def _wrong(
    view: View, where: str, decisions: tuple[tuple[int, Decision], ...], expected: set[tuple[str | None, bool]], seq: int
) -> Iterator[Deviation]:
    told = {(data.action, isinstance(data, Approval)): at for at, data in decisions}
    for (action, granted), at in told.items():
        if (action, granted) not in expected:
            what = f"{where}: an {'approval' if granted else 'denial'} of {action or 'no action'} that the script does not give"
            yield Deviation(seq=at, what=what, affected=view.reach.of_action(action), harmful=True)
    for action, granted in sorted(expected - set(told), key=str):
        what = f"{where}: the {'approval' if granted else 'denial'} of {action or 'no action'} is not in the ledger"
        yield Deviation(seq=seq, what=what, affected=view.reach.of_action(action), harmful=True)


def _releases(view: View, said: Said) -> Iterator[Deviation]:
    """The log of releases against the sources."""
    logged = [one.slice for one in said.released if one.how != "opener"]
    out = [name for name in dict.fromkeys(slices_said(said)) if name in view.play.slices and name not in said.stand.released]
    for name in dict.fromkeys([*logged, *out]):
        if name not in out or logged.count(name) != 1:
            how = (
                "is said and not logged"
                if name not in logged
                else "is logged and not said"
                if name not in out
                else "is logged twice"
            )
            what = f"{said.data.id}: the release of slice {name} {how}"
            yield Deviation(seq=said.seq, what=what, affected=view.reach.of_slices([name]), harmful=True)


def _stops(view: View) -> Iterator[Deviation]:
    """A response is stopped for a probe that says so, and for nothing else."""
    for seq, name in view.run.stops:
        played = view.play.probes.get(name or "")
        if played is None or not played.probe.interrupt:
            what = f"a response was stopped for {name or 'nothing'}, which the script does not ask for"
            yield Deviation(seq=seq, what=what, affected=view.reach.at(seq), harmful=True)


def _claim(view: View) -> Iterator[Deviation]:
    """The final claim is no question, and everything the specification needs was said before it; the closer is the script's."""
    run = view.run
    if run.claim is not None:
        seq, over, stand = run.claim
        for name in stand.mandatory:
            what = f"the final claim was accepted although slice {name} had not been said"
            affected = view.reach.of_slices([name])
            yield Deviation(seq=seq, what=what, affected=affected, outcome=view.outcome_of_slice(name), harmful=True)
        due = stand.due()
        for name in due.names if due is not None and due.kind == "slices" else ():
            if name not in stand.mandatory:
                what = f"the final claim was accepted while slice {name} was due"
                yield Deviation(seq=seq, what=what, affected=view.reach.of_slices([name]), harmful=True)
        if over is not None and over.asks:
            affected = view.reach.on_claim("final_claim")
            yield Deviation(
                seq=seq, what="a question was taken for the final claim", affected=affected, outcome=True, harmful=True
            )
    if run.closer is None:
        return
    seq, data = run.closer
    if data.text != view.script.closer or data.source_ids != ["closer"]:
        yield Deviation(seq=seq, what="the closer is not the script's; it is not sent", quote=str(data.text), harmful=False)
    if run.claim is None:
        yield Deviation(seq=seq, what="the closer stands there without a final claim", harmful=None)


def _prompt(view: View, prompted: Prompted) -> Iterator[Deviation]:
    """A permission prompt is answered as the script says (docs/script.md 5.16)."""
    stand, answer = prompted.stand, prompted.answer
    named = [name for name in view.play.actions if _asks_for(view, name, prompted)]
    allow, text = view.script.prompts == "allow", "" if view.script.prompts == "allow" else FIXED["refusal"]
    expected: set[tuple[str | None, bool]] = set() if allow else {(None, False)}
    if named:
        text, expected = view.play.actions[named[0]].text, {(name, True) for name in named}
        allow = True
        for name in named:
            waits = any(view.play.probes[probe].probe.approves == name for probe in stand.waiting)
            if waits or not stand.granted(name):
                denied = view.play.actions[name].decision == "deny" and not waits
                text = view.play.actions[name].text if denied else FIXED["later" if waits else "refusal"]
                allow, expected = False, {(name, False)}
                break
    if (answer.decision == "allow") != allow:
        what = f"a permission prompt for {', '.join(named) or 'no action of the script'} was answered {answer.decision}"
        yield Deviation(seq=prompted.seq, what=what, affected=_of_actions(view, named), harmful=True)
    elif answer.text != text:
        what = f"a permission prompt was answered {answer.text!r}, not {text!r}"
        affected = _of_actions(view, named)
        yield Deviation(seq=prompted.seq, what=what, quote=answer.text, affected=affected, harmful=None)
    yield from _wrong(view, "permission prompt", prompted.decisions, expected, prompted.seq)


def _of_actions(view: View, names: list[str]) -> list[str]:
    found = [id for name in names for id in view.reach.of_action(name)] if names else view.reach.of_action(None)
    return view.reach.ordered(found)


def _asks_for(view: View, name: str, prompted: Prompted) -> bool:
    action = view.play.actions[name]
    wanted = [*([action.command] if action.command else []), *view.play.judged.get(name, ())]
    asked = view.json_of(prompted.request.input)
    commands = commands_in(asked) if wanted else []
    if any(search(one, text) for text in commands for one in wanted):
        return True
    return bool(action.paths) and any(path_matches(path, action.paths) for path in paths_in(asked))


def _loose(view: View) -> Iterator[Deviation]:
    """Decisions and releases of no message. (Deliveries: sim_probe_coverage.)"""
    for seq, kind, name in view.run.loose:
        if kind in ("approval", "denial"):
            affected = view.reach.of_action(name or None)
            yield Deviation(seq=seq, what=f"{kind} of {name or 'no action'} without a message", affected=affected, harmful=True)
        elif kind == "slice_released":
            affected = view.reach.of_slices([name])
            yield Deviation(seq=seq, what=f"slice {name} is released without a message", affected=affected, harmful=True)
