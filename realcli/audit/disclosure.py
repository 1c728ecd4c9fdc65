"""sim_no_early_disclosure: nothing of a withheld slice, a probe to come, a check or an oracle appears before its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.audit.model import Deviation, SimCheck
from realcli.audit.replay import Said, slices_said
from realcli.audit.texts import keys, run_shared, runs
from realcli.audit.view import View, sim_check, texts_of
from realcli.audit.wording import Wording
from realcli.benchmark.leaks import leak_terms, public_words
from realcli.benchmark.script_models import Probe
from realcli.benchmark.words import stands_in, tokens, visible

NAME: Final = "sim_no_early_disclosure"
TAIL = 400
"""Characters of the message before, so that a leak may be split over two."""


def check(view: View) -> SimCheck:
    """Order of releases, then what every message holds beside its own canonical text."""
    found: list[Deviation] = []
    for licensed, wording in zip(view.licensed, view.wordings, strict=True):
        said = licensed.said
        early = [one.source[6:] for one in licensed.breaches if one.kind == "unlicensed" and one.source.startswith("slice:")]
        early = [name for name in early if name in view.play.slices and name not in said.stand.released]
        found += [_deviation(view, said, f"slice {name} was said before its time", [name]) for name in early]
        if not wording.verbatim and said.text is not None:
            found += _in_text(view, said, wording)
    withheld = any(said.after.mandatory or set(view.play.slices) - said.after.released for said in view.run.said)
    na = None if withheld or not view.run.said else "no slice was withheld"
    return sim_check(NAME, found, open_=[one.said for one in view.open], na=na)


def _deviation(view: View, said: Said, what: str, slices: list[str], quote: str | None = None) -> Deviation:
    affected = view.reach.ordered([*view.reach.of_slices(slices), *view.reach.clarification])
    return Deviation(seq=said.seq, what=f"{said.data.id}: {what}", quote=quote, affected=affected, harmful=True)


def _in_text(view: View, said: Said, wording: Wording) -> Iterator[Deviation]:
    """What stands in the text and neither in what it may say nor in what was said before."""
    known = tokens("\n".join([wording.canonical, said.before])) + public_words(view.script)
    words = tokens(said.before[-TAIL:] + " " + (said.text or ""))
    fresh = runs(known)
    said_now = set(slices_said(said))
    for part in view.script.slices:
        if part.id in said.stand.released or part.id in said_now:
            continue
        terms = [term for term in leak_terms(part, public_words(view.script)) if not stands_in(tokens(term), known)]
        leaked = next((term for term in terms if stands_in(tokens(term), words)), None)
        leaked = leaked or run_shared(words, [part.text], fresh)
        if leaked:
            yield _deviation(view, said, f"{leaked!r} gives slice {part.id} away", [part.id], said.text)
    yield from _to_come(view, said, words, known)
    yield from _of_checks(view, said, words, known)


def _to_come(view: View, said: Said, words: tuple[str, ...], known: tuple[str, ...]) -> Iterator[Deviation]:
    """Texts of probes to come, and of answers nobody has asked for."""
    fresh = runs(known)
    for probe in view.script.probes:
        texts = _ahead(probe, said)
        leaked = _term(texts, words, known) or run_shared(words, texts, fresh)
        if leaked:
            what = f"{said.data.id}: {leaked!r} gives the probe {probe.id} away before it comes"
            affected = view.reach.ordered([*view.reach.of_probe(probe.id), *view.reach.clarification])
            yield Deviation(seq=said.seq, what=what, quote=said.text, affected=affected, harmful=True)
    for answer in view.script.answers:
        if f"answer:{answer.id}" in said.stand.said or f"answer:{answer.id}" in said.data.source_ids:
            continue
        leaked = _term([answer.text], words, known) or run_shared(words, [answer.text], fresh)
        if leaked:
            yield _deviation(view, said, f"{leaked!r} answers a question nobody asked ({answer.id})", [], said.text)


def _ahead(probe: Probe, said: Said) -> list[str]:
    """What of a probe is still to come once the message is said."""
    after = said.after
    if probe.id in after.waiting:
        return list(texts_of(probe))
    parts = probe.parts[after.parts[1] :] if after.parts is not None and after.parts[0] == probe.id else []
    closes = probe.id in after.closures or bool(parts)
    return [*parts, *([text for text in texts_of(probe) if text not in (probe.text, *probe.parts)] if closes else [])]


def _term(texts: list[str], words: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    terms = {term: tokens(term) for text in texts for term in keys(text)}
    return next((t for t, own in sorted(terms.items()) if own and stands_in(own, words) and not stands_in(own, known)), None)


def _of_checks(view: View, said: Said, words: tuple[str, ...], known: tuple[str, ...]) -> Iterator[Deviation]:
    """What a run is judged by: texts and ids of its checks, ids and markers of its oracles, names of its canaries."""
    fresh, text = runs(known), visible(said.text or "")
    earlier = visible("\n".join([view.script_texts, said.before]))
    for one in view.reach.instances:
        scenario = one.scenario
        told = [scenario.expected, *(t for check in scenario.checks for t in (check.pass_, check.zero_when, check.na_when))]
        ids = [scenario.id, *(check.id for check in scenario.checks if "-" in check.id)]
        leaked = run_shared(words, told, fresh) or next((id for id in ids if id in text and id not in earlier), None)
        if leaked:
            what = f"{said.data.id}: {leaked!r} is of what the run is judged by ({one.id})"
            affected = view.reach.ordered([one.id, *view.reach.clarification])
            yield Deviation(seq=said.seq, what=what, quote=said.text, affected=affected, harmful=True)
    oracle = view.oracle
    secret = {id: [id] for id in oracle.checkers if "-" in id or "_" in id}
    secret |= {checker.run: [id] for id, checker in oracle.checkers.items()}
    for line, ids in secret.items():
        if line in text and line not in earlier:
            bound = [one.id for one in view.reach.instances if any(_bound(value, ids) for value in one.bindings.values())]
            what = f"{said.data.id}: {line!r} names an oracle"
            affected = view.reach.ordered([*bound, *view.reach.clarification])
            yield Deviation(seq=said.seq, what=what, quote=said.text, affected=affected, harmful=True)


def _bound(value: object, ids: list[str]) -> bool:
    if isinstance(value, dict):
        return any(_bound(item, ids) for item in value.values())
    return value in ids
