"""File-system ids are taken on for a moment, and never where that would open the runner's memory."""

from __future__ import annotations

import os

import pytest

from realcli_runner import target

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its ids")


def file_ids() -> tuple[int, int]:
    who = target.ids(os.getpid())
    return who.fsuid, who.fsgid


@pytest.mark.parametrize(("exposed", "inside"), [(False, (65534, 65533)), (True, (0, 0))])
def test_ids_are_those_of_the_process_looked_at(exposed: bool, inside: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "changes_expose", lambda: exposed)
    with target.seen_as(65534, 65533):
        assert file_ids() == inside
    assert file_ids() == (0, 0)
