"""Agents x cases, with the real programs. The table is printed at the end; docs/agents.md holds the same one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.conformance.cases import CASES, Begin
from tests.integration.conformance.drivers import drivers
from tests.integration.conformance.table import RESULTS


def cells() -> Iterator[Any]:
    for program in drivers():
        for name, case in CASES.items():
            marks = () if case.quick else (pytest.mark.slow,)
            yield pytest.param(program, name, id=f"{program}-{name}", marks=marks)


@pytest.mark.parametrize(("program", "name"), list(cells()))
async def test_case(program: str, name: str, begin_for: Any) -> None:
    driver, case = drivers()[program], CASES[name]
    differs = driver.differs.get(name)
    if differs is not None and differs.state == "no such thing":
        RESULTS[name, program] = "no such thing"
        return
    seen: list[str] = []
    begin: Begin = begin_for(driver)

    async def watched(*args: Any, **options: Any) -> Any:
        bench = await begin(*args, **options)
        bench.ledger.subscribe(lambda event, _: seen.append(event.kind))
        seen.extend(event.kind for event in bench.events)
        return bench

    RESULTS[name, program] = "FAILED"
    if differs is None:
        await case.body(driver, watched)
        assert case.proves <= set(seen), f"the ledger lacks {sorted(case.proves - set(seen))}"
        RESULTS[name, program] = "passed"
        return
    with pytest.raises((AssertionError, TimeoutError)):
        await case.body(driver, watched)
    RESULTS[name, program] = "fails as expected"
