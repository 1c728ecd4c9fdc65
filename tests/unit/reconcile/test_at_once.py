"""Creations of one step: several at a time, and what happens to the rest when one is refused."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from realcli_operator.execute import Refused
from realcli_operator.handlers import AT_ONCE, at_once


async def test_all_are_made_and_no_more_than_some_at_a_time() -> None:
    running, most, made = 0, 0, list[int]()

    async def create(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        made.append(number)

    await at_once(partial(create, number) for number in range(3 * AT_ONCE))
    assert sorted(made) == list(range(3 * AT_ONCE))
    assert most == AT_ONCE


async def test_what_has_begun_ends_and_nothing_else_begins_after_a_refusal() -> None:
    begun, ended = set[int](), set[int]()
    refused = asyncio.Event()

    async def create(number: int) -> None:
        begun.add(number)
        if number == 3:
            refused.set()
            raise Refused("quota")
        await refused.wait()
        await asyncio.sleep(0)
        ended.add(number)

    with pytest.raises(Refused, match="quota"):
        await at_once(partial(create, number) for number in range(100))
    assert begun == {0, 1, 2, 3}
    assert ended == {0, 1, 2}


async def test_nothing_is_done_of_nothing() -> None:
    await at_once(())
