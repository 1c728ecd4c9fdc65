"""Everything wrong with a benchmark, said at once: file, field, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import ValidationError


class Problem(NamedTuple):
    """One fault."""

    file: str  # relative to the suite directory
    field: str  # "" where the whole file is meant
    what: str  # what was found
    remedy: str  # what to do

    def __str__(self) -> str:
        place = _shown(f"{self.file}: {self.field}" if self.field else self.file)
        return f"{place}: {_shown(self.what, keep=chr(10))}; {_shown(self.remedy)}"


def _shown(text: str, keep: str = "") -> str:
    """Names and texts of a stranger's task, without anything a terminal would obey."""
    return "".join(char if char.isprintable() or char in keep else ascii(char)[1:-1] for char in text)


class BenchmarkError(ValueError):
    """A benchmark that cannot be used, with every problem found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def from_validation(file: str, error: ValidationError, remedies: dict[str, str] | None = None) -> list[Problem]:
    """A pydantic error as problems. `remedies`: dotted field -> what to do about it."""
    return [_problem(file, dict(fault), remedies or {}) for fault in error.errors(include_url=False)]


def _problem(file: str, fault: dict[str, object], remedies: dict[str, str]) -> Problem:
    location = fault["loc"] if isinstance(fault["loc"], tuple) else ()
    field = ".".join(str(part) for part in location)
    kind, message = str(fault["type"]), str(fault["msg"])
    if kind == "extra_forbidden":
        return Problem(file, field, "is not a key this version knows", remedies.get(field, "remove it or correct its name"))
    if kind == "missing":
        return Problem(file, field, "is missing", remedies.get(field, "add it"))
    found = fault.get("input")
    shown = "" if isinstance(found, dict | list) else f" (found {found!r})"
    return Problem(file, field, f"{message[:1].lower()}{message[1:]}{shown}", remedies.get(field, "correct the value"))
