"""The summary held against what was counted again: mismatches by their place, and numbers nobody counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from realcli_cli.recount.expected import Number

Json = Any
GIVEN = ("/judge/identity/", "/benchmark/", "/sweep/", "/deviations/")
"""What the sweep was given or quotes, not what was counted."""
NUMBER = frozenset(("exact", "value", "text", "interval"))
"""What an exact number is written as."""
_MISSING = object()


def held(summary: Json, expected: Iterable[tuple[str, Any]]) -> tuple[int, list[str]]:
    """(numbers counted again, lines that name what differs or was not counted)."""
    wrong: list[str] = []
    met: set[str] = set()
    for pointer, value in expected:
        met.add(pointer)
        said = at(summary, pointer)
        if not _same(said, value):
            wrong.append(f"{pointer}: the report says {told(said)}, the evidence gives {told(value)}")
    for pointer in numbers(summary):
        if pointer not in met and not pointer.startswith(GIVEN):
            wrong.append(f"{pointer}: the report says {told(at(summary, pointer))}, and no evidence gives such a number")
    for pointer in _strange(summary):
        wrong.append(f"{pointer}: the report says {told(at(summary, pointer))}, and no evidence gives such a number")
    wrong += [f"{pointer}: its text {text!r} is not the number beside it" for pointer, text in _odd_texts(summary)]
    return len(met), wrong


def at(found: Json, pointer: str) -> Any:
    """What stands there (RFC 6901); `_MISSING` where nothing does."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return found


def numbers(found: Json, pointer: str = "") -> Iterator[str]:
    """Places of all numbers: an exact one is one place, its interval two more."""
    if isinstance(found, dict):
        if "exact" in found:
            yield pointer
            found = {"interval": found["interval"]} if "interval" in found else {}
        for key, value in found.items():
            yield from numbers(value, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from numbers(value, f"{pointer}/{index}")
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield pointer


def _strange(found: Json, pointer: str = "") -> Iterator[str]:
    """Places of what stands in a number and is no part of one."""
    for key, value in found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ():
        place = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
        if isinstance(found, dict) and "exact" in found and key not in NUMBER:
            yield place
        yield from _strange(value, place)


def _odd_texts(found: Json, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Texts of intervals and of money that say something else than the numbers they stand beside."""
    if isinstance(found, dict):
        text = found.get("text")
        if {"low", "high", "text"} == set(found):
            ends = [Fraction(part) for part in str(text).split(" to ")]
            known = [Fraction(str(found["low"])), Fraction(str(found["high"]))]
            if len(ends) != 2 or any(abs(a - b) > Fraction(1, 2000) for a, b in zip(ends, known, strict=True)):
                yield pointer, str(text)
        elif {"usd", "text"} == set(found):
            shown = Fraction(str(text).removeprefix("$").replace(",", ""))
            if abs(shown - Fraction(found["usd"])) > Fraction(1, 200):
                yield pointer, str(text)
        for key, value in found.items():
            yield from _odd_texts(value, f"{pointer}/{key}")
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from _odd_texts(value, f"{pointer}/{index}")


def _same(said: Any, value: Any) -> bool:
    if value is None:
        return said is _MISSING or said is None
    if isinstance(value, Number):
        return isinstance(said, str) and Fraction(said) == value
    if isinstance(value, Fraction):
        return (
            isinstance(said, dict)
            and said.get("exact") == str(value)
            and said.get("value") == float(value)
            and _text(said, value)
        )
    if isinstance(value, bool) or isinstance(said, bool):
        return said is value
    return bool(said == value)


def _text(said: Json, value: Fraction) -> bool:
    """The text is the number, rounded half away from zero to three decimals."""
    shown = Fraction(said["text"])
    return abs(shown - value) <= Fraction(1, 2000) and len(said["text"].partition(".")[2]) == 3


def told(value: Any) -> str:
    """A value for people."""
    if value is _MISSING or value is None:
        return "nothing"
    return str(value.get("exact", value)) if isinstance(value, dict) else str(value)
