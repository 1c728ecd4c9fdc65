"""Models that leak on purpose: nothing withheld reaches the agent, whatever the style."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import leak_run
from tests.support.leaking_models import STYLES, WOVEN

PAGE = Path(__file__).parents[3] / "docs" / "simulator.md"
UNSEEN = WOVEN


def documented() -> dict[str, float]:
    """Share discarded, by style, as the page says."""
    rows = re.findall(r"^\| ([^|]+?) \| \d+ \| ([\d.]+) % \|", PAGE.read_text(), re.MULTILINE)
    return {style: float(share) / 100 for style, share in rows}


async def measured(style: str | None, messages: int) -> leak_run.Count:
    count = await leak_run.run(style, messages, seed=7)
    assert count.literal == 0
    assert count.unlicensed == 0
    return count


@pytest.mark.parametrize("style", STYLES)
async def test_nothing_withheld_is_delivered(style: str) -> None:
    count = await measured(style, 60)
    share = count.caught / count.drafts
    assert abs(share - documented()[style]) < 0.1
    assert share > 0.9 or style == UNSEEN


async def test_honest_wording_passes() -> None:
    count = await measured(None, 200)
    assert count.caught <= 0.02 * count.drafts


@pytest.mark.slow
async def test_a_hundred_thousand_messages() -> None:
    total = 0
    for style in [None, *STYLES]:
        count = await measured(style, 5000)
        total += count.messages
        assert style is None or abs(count.caught / count.drafts - documented()[style]) < 0.03
    assert total >= 100_000
