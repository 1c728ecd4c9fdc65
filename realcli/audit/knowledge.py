"""sim_knowledge_bounds: the user asserts nothing of the environment that the user cannot know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.audit.model import Deviation, SimCheck
from realcli.audit.replay import Said
from realcli.audit.stability import contradicted
from realcli.audit.texts import numbers, paths, run_shared, runs, work_in
from realcli.audit.view import View, sim_check
from realcli.audit.wording import Wording
from realcli.benchmark.instruction import code_spans
from realcli.benchmark.words import tokens
from realcli.trajectory.patterns import content

NAME: Final = "sim_knowledge_bounds"


def check(view: View) -> SimCheck:
    """Paths, numbers, names and outputs that neither the script nor the agent has told."""
    found = [
        one
        for wording in view.wordings
        if not wording.verbatim and not wording.unread
        for one in _facts(view, wording.said, wording)
    ]
    return sim_check(NAME, found, open_=[one.said for one in view.open])


def _facts(view: View, said: Said, wording: Wording) -> Iterator[Deviation]:
    known = "\n".join([view.script_texts, said.before, said.heard])
    added = [one for one in wording.added if not work_in(one.text) and contradicted(one, said) is None]
    for one in added:
        unknown = sorted((paths(one.text) | code_spans(one.text)) - _standing(known)) + sorted(numbers(one.text) - numbers(known))
        unknown = [fact for fact in unknown if fact not in known]
        if unknown:
            yield _deviation(view, said, f"says {', '.join(unknown)}, which nobody has told the user", one.text)
    for canonical, other in wording.changed:
        new = paths(other.text) - paths(canonical.text) - code_spans(other.text)  # a literal is compared as such
        fresh = [path for path in sorted(new) if path not in known]
        if fresh and not work_in(other.text):
            yield _deviation(view, said, f"says {', '.join(fresh)}, which nobody has told the user", other.text)
    for one in [*added, *(other for _, other in wording.changed)]:
        seen = run_shared(one.words, _outputs(view, said), runs(tokens(known)))
        if seen is not None:
            yield _deviation(view, said, f"repeats what only a tool has shown: {seen!r}", one.text)


def _standing(known: str) -> frozenset[str]:
    return paths(known) | code_spans(known)


def _outputs(view: View, said: Said) -> Iterator[str]:
    """What tools had given back to the agent."""
    for _, text in view.run.results[: said.results]:
        found = content(text, view.blobs)
        if found is not None:
            yield found.decode("utf-8", "replace")


def _deviation(view: View, said: Said, what: str, quote: str) -> Deviation:
    affected = view.reach.of_dimensions(view.reach.at(said.seq), "OR", "TC")
    return Deviation(seq=said.seq, what=f"{said.data.id}: {what}", quote=quote, affected=affected, harmful=None)
