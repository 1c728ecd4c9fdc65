"""sim_knowledge_bounds: the user asserts nothing of the environment that the user cannot know.

The agent chose much of what is compared here, so its texts are only ever searched for what the user said, never taken apart by a
pattern that can be made slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from realcli.audit.model import Deviation, SimCheck
from realcli.audit.replay import Said
from realcli.audit.stability import contradicted
from realcli.audit.texts import RUN, Sentence, numbers, paths, runs, work_in
from realcli.audit.view import View, sim_check
from realcli.audit.wording import Wording
from realcli.benchmark.instruction import code_spans
from realcli.benchmark.words import stands_in, tokens
from realcli.trajectory.patterns import content

NAME: Final = "sim_knowledge_bounds"
Run = tuple[str, ...]


def check(view: View) -> SimCheck:
    """Paths, numbers, names and outputs that neither the script nor the agent has told."""
    told = [one for one in view.wordings if not one.verbatim and not one.unread]
    shown = _shown(view, {run for one in told for sentence in _own(one) for run in runs(sentence.words)})
    found = [deviation for one in told for deviation in _facts(view, one, shown)]
    return sim_check(NAME, found, open_=[one.said for one in view.open])


def _own(wording: Wording) -> list[Sentence]:
    """Sentences that are not the script's own."""
    said = wording.said
    added = [one for one in wording.added if not work_in(one.text) and contradicted(one, said) is None]
    return [*added, *(other for _, other in wording.changed)]


def _facts(view: View, wording: Wording, shown: dict[Run, int]) -> Iterator[Deviation]:
    said = wording.said
    known = "\n".join([view.script_texts, said.before, said.heard])
    words = tokens(known)
    changed = {other: canonical for canonical, other in wording.changed}
    for one in _own(wording):
        if one in changed:  # literals and numbers of these are compared with the canonical ones
            named = sorted(paths(one.text) - paths(changed[one].text) - code_spans(one.text)) if not work_in(one.text) else []
            figures: list[str] = []
        else:
            named, figures = sorted(paths(one.text) | code_spans(one.text)), sorted(numbers(one.text))
        unknown = [fact for fact in named if fact not in known] + [figure for figure in figures if not _figure_in(figure, known)]
        if unknown:
            yield _deviation(view, said, f"says {', '.join(unknown)}, which nobody has told the user", one.text)
        seen = [
            run for run in sorted(runs(one.words)) if shown.get(run, said.results) < said.results and not stands_in(run, words)
        ]
        if seen:
            yield _deviation(view, said, f"repeats what only a tool has shown: {' '.join(seen[0])!r}", one.text)


def _figure_in(figure: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(figure)}(?!\w)", text) is not None


def _shown(view: View, wanted: set[Run]) -> dict[Run, int]:
    """Which of these stretches a tool gave back to the agent, and in which result first. One pass over what may be much."""
    found: dict[Run, int] = {}
    for number, (_, text) in enumerate(view.run.results if wanted else ()):
        data = content(text, view.blobs)
        words = tokens(data.decode("utf-8", "replace")) if data is not None else ()
        for at in range(len(words) - RUN + 1):
            run = words[at : at + RUN]
            if run in wanted:
                found.setdefault(run, number)
    return found


def _deviation(view: View, said: Said, what: str, quote: str) -> Deviation:
    affected = view.reach.of_dimensions(view.reach.at(said.seq), "OR", "TC")
    return Deviation(seq=said.seq, what=f"{said.data.id}: {what}", quote=quote, affected=affected, harmful=None)
