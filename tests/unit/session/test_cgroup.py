"""What a node kills for memory: read from the container's own cgroup, and not mixed within a sweep."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from realcli.api.plan import Cgroup
from realcli_session.cgroup import differs, read_cgroup
from realcli_session.phases.setup import set_up
from realcli_session.phases.table import Cause

V1 = Cgroup(version="1", kills="Process")
V2 = Cgroup(version="2", kills="Container")
SINGLE = Cgroup(version="2", kills="Process")


def tree(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.mark.parametrize(
    ("files", "own", "found"),
    [
        ({"memory__memory_limit": "1"}, "9:memory:/kubepods/x\n", V1),
        ({"cgroup_controllers": "memory", "memory_oom_group": "1\n"}, "0::/\n", V2),
        ({"cgroup_controllers": "memory", "memory_oom_group": "0\n"}, "0::/\n", SINGLE),
        ({"cgroup_controllers": "memory", "kubepods__pod__memory_oom_group": "1\n"}, "0::/kubepods/pod\n", V2),
        ({"cgroup_controllers": "memory"}, "0::/\n", SINGLE),
        ({}, "", None),
    ],
    ids=["v1", "v2", "v2, singleProcessOOMKill", "v2 without a namespace of its own", "v2 that shows no group", "nothing"],
)
def test_what_it_shows(tmp_path: Path, files: dict[str, str], own: str, found: Cgroup | None) -> None:
    where = tmp_path / "own"
    where.write_text(own)
    (tmp_path / "cgroup").mkdir()
    assert read_cgroup(tree(tmp_path / "cgroup", **files), where) == found


@pytest.mark.parametrize(("planned", "here"), [(V1, V1), (V2, V2), (V1, SINGLE), (None, V2), (V1, None), (None, None)])
def test_the_same_kills_and_the_unknown_are_no_difference(planned: Cgroup | None, here: Cgroup | None) -> None:
    assert differs(planned, here, "n1") is None


def test_a_node_that_kills_otherwise_is_named_with_the_remedy() -> None:
    said = differs(V2, V1, "n1") or ""
    assert "node n1" in said
    assert "it kills one process (cgroup v1), planned was the whole container (cgroup v2)" in said
    assert "spec.pods.nodeSelector" in said


async def test_a_session_on_such_a_node_does_not_begin() -> None:
    """Before anything is fetched or listened for: a retry may find another node."""
    lock = SimpleNamespace(spec=SimpleNamespace(limits=SimpleNamespace(setup="60s")), cgroup=V2)
    attempt: Any = SimpleNamespace(
        writer=SimpleNamespace(emit=lambda actor, data: None),
        trial=SimpleNamespace(lock=lock),
        settings=SimpleNamespace(cgroup=V1, node="n1"),
    )
    cause, said = await set_up(attempt, cast(Any, None), lambda: pytest.fail("it began"))
    assert cause is Cause.SETUP_TIMEOUT
    assert "node n1" in said
