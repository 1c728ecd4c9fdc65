"""What pydantic found wrong with an object, as one line of an error that names the object itself."""

from __future__ import annotations

from pydantic import ValidationError

MAX_PLACE = 120  # characters of a field's name, which may be a stranger's


def first_fault(error: Exception) -> str:
    """`spec.judge.votes: Input should be less than or equal to 9 (and 2 more)`; without a field where the whole is meant.

    Never the input itself, which may be an agent's text of any length. Any other exception is what it says.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    place = ".".join(map(str, faults[0]["loc"]))
    place = place if len(place) <= MAX_PLACE else f"{place[:MAX_PLACE]}…"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    told = faults[0]["msg"].removeprefix("Value error, ") + more
    return f"{place}: {told}" if place else told
