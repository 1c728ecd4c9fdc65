"""What gives a withheld slice away: its leak terms. Shared by the guards of the simulated user, its audit and `task check`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from realcli.benchmark.instruction import code_spans
from realcli.benchmark.problems import Problem
from realcli.benchmark.script import SCRIPT
from realcli.benchmark.script_models import Script, Slice
from realcli.benchmark.words import stands_in, tokens

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?![\w])")


def public_words(script: Script) -> tuple[str, ...]:
    """What may be said at any time: opener, closer, persona and what the user knows."""
    return tokens("\n".join([script.opener, script.closer, script.persona, *script.user_knows]))


def leak_terms(part: Slice, public: tuple[str, ...]) -> list[str]:
    """Those the author gave, else literals in backticks and numbers of the text, as far as they are not public."""
    if part.leak_terms:
        return list(part.leak_terms)
    found = sorted(code_spans(part.text)) + _NUMBER.findall(part.text)
    return [term for term in dict.fromkeys(found) if tokens(term) and not stands_in(tokens(term), public)]


def check_leak_terms(script: Script) -> Iterator[Problem]:
    """Every withheld slice has a term by which its leak is seen, and no term is said before anything is released."""
    public = public_words(script)
    for part in script.slices:
        field = f"slice {part.id!r} leakTerms"
        if part.mandatory and not leak_terms(part, public):
            remedy = "name words of its text that nothing said before it holds"
            yield Problem(SCRIPT, field, "has no leak term, so nobody would see it leak", remedy)
        words = tokens(part.text)
        for term in part.leak_terms:
            if not tokens(term):
                yield Problem(SCRIPT, field, f"{term!r} holds no word or number", "use words of the slice's text")
            elif not stands_in(tokens(term), words):
                yield Problem(SCRIPT, field, f"{term!r} does not stand in the slice's text", "use words of the slice's text")
            elif stands_in(tokens(term), public):
                remedy = "use words that opener, closer, persona and userKnows do not hold"
                yield Problem(SCRIPT, field, f"{term!r} is said before anything is released", remedy)
