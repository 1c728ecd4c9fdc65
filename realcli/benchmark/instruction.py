"""instruction.md: the specification w, with its numbered requirements ("1. …" at the start of a line)."""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"^(\d+)\.\s+", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


def requirements(instruction: str) -> dict[str, str]:
    """Number -> text of each numbered requirement, in order; it reaches to the next number, heading or unindented paragraph."""
    found: dict[str, str] = {}
    marks = list(_NUMBERED.finditer(instruction))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        text = instruction[mark.end() : following.start() if following else len(instruction)]
        found[mark[1]] = re.split(r"\n\s*\n(?=\S)|\n(?=#)", text)[0].strip()
    return found


def duplicates(instruction: str) -> list[str]:
    """Numbers that stand more than once, or out of 1, 2, 3, …"""
    numbers = [mark[1] for mark in _NUMBERED.finditer(instruction)]
    return [number for place, number in enumerate(numbers, 1) if number != str(place)]


def code_spans(text: str) -> set[str]:
    """Literals in backticks: names, paths, formats, values. What a slice may not lose and may not add."""
    return set(_CODE.findall(text))
