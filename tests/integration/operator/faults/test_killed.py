"""The operator dies after its writes: at every position of a sweep of six trials, one of which needs a second attempt, and
whose judge needs a second run. What is there in the end is what an operator leaves that never died."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from realcli.api.termination import Result
from tests.support.end_audit import differences, end_state
from tests.support.life import Lives
from tests.support.stub_kubelet import Act, Seen, happy, say

pytestmark = pytest.mark.apiserver
STRIDE = 4
"""Killed after every so many writes with eight workers, of which others have writes on their way; `make chaos` does it at each
position alone. Events follow the status that says the same, so one of the sweeps is killed after each event."""


class Troubled:
    """The script of the six trials; what was refused once is remembered by namespace."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def __call__(self, seen: Seen) -> Act | None:
        if seen.role == "work" and (seen.trial, seen.attempt) == ("six-00002", "1"):
            return Act(say("Work", Result.WORK_INVALID, reason="ProviderUnavailable", message="529 for ten minutes"))
        if seen.role == "judge" and seen.namespace not in self.refused:
            self.refused.add(seen.namespace)
            return Act(say("Judge", Result.REFUSED, reason="ProviderUnavailable", message="the judge's model is away"))
        return happy(seen)


def kind_of(write: str) -> str:
    """A write without the names in it."""
    verb, path = write.split(" ")
    parts = path.split("/namespaces/")[1].split("/")[1:]
    return f"{verb} {parts[0]}{'/status' if parts[-1] == 'status' else ''}"


def named(write: str) -> str:
    """A write without namespace and the digest in an event's name."""
    verb, path = write.split(" ")
    return re.sub(r"\.[0-9a-f]{16}$", "", f"{verb} {path.split('/namespaces/')[1].split('/', 1)[1]}")


async def test_after_every_write(place: Callable[[str], Any], admin: Any) -> None:
    troubled = Troubled()
    never = lambda own, total: False  # noqa: E731
    plans = {
        "whole": never,
        "always": lambda own, total: own == 1,
        "stride": lambda own, total: total % STRIDE == 0,
        "told": never,
    }
    places = {name: await place(name) for name in plans}
    lives = {name: Lives(here.plane, name, plans[name], "/events/" if name == "told" else "") for name, here in places.items()}

    async def run(name: str) -> None:
        here = places[name]
        await here.apply("six", troubled, repeats=3)
        # No write is on its way when another is the last, so that each is the last once.
        await lives[name].run(lambda: here.over("six"), one_by_one=name == "always")

    await asyncio.gather(*(run(name) for name in plans))
    whole = await end_state(admin, "whole")
    (sweep,) = whole["sweeps"]
    assert (sweep["status"]["state"], sweep["status"]["trials"]) == ("Complete", "6/6")
    assert [trial["status"]["attempt"] for trial in whole["trials"]] == [1, 1, 2, 1, 1, 1]
    for name, here in places.items():
        assert await here.findings() == []
        assert differences(await end_state(admin, name), whole) == [], name
    # Nothing that the unbroken operator wrote is missing among the positions; an event follows the status that says the same,
    # and is not made up for.
    kept = {named(write) for write in lives["whole"].writes if "/events/" not in write}
    assert kept <= {named(write) for write in lives["always"].positions}
    died = [write for name in plans for write in lives[name].positions]
    assert {kind_of(write) for write in died} >= {
        "POST jobs", "POST configmaps", "POST trials", "POST pods", "PATCH trials/status", "DELETE pods", "DELETE jobs",
        "PATCH benchmarksweeps/status", "POST events",
    }  # fmt: skip
    assert len(lives["always"].positions) >= 60
