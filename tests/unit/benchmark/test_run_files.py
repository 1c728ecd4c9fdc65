from __future__ import annotations

from pathlib import Path

import pytest

from realcli.benchmark.run_files import PlacedFile, render_run, render_traps
from realcli.ledger.seals import RunJson

RUN = RunJson(instance_id="rc-0123456789abcdef", nonce="ab" * 32, seed=1)


def put(root: Path, name: str, content: bytes, mode: int = 0o644) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def test_files_are_mirrored_at_the_root_with_the_run_s_values(tmp_path: Path) -> None:
    put(tmp_path, "run/app/data/a.csv", b"# ${run.instance_id} ${run.nonce}\n\xff")
    put(tmp_path, "run/usr/bin/tool", b"#!/bin/sh\necho ${HOME}\n", 0o755)
    put(tmp_path, "interaction/traps/app/notes.md", b"id ${run.instance_id}")
    assert render_run(tmp_path, RUN) == [
        PlacedFile("/app/data/a.csv", 0o644, b"# rc-0123456789abcdef " + b"ab" * 32 + b"\n\xff"),
        PlacedFile("/usr/bin/tool", 0o755, b"#!/bin/sh\necho ${HOME}\n"),
    ]
    assert render_traps(tmp_path, RUN) == [PlacedFile("/app/notes.md", 0o644, b"id rc-0123456789abcdef")]


def test_a_task_without_such_files_has_none(tmp_path: Path) -> None:
    assert render_run(tmp_path, RUN) == render_traps(tmp_path, RUN) == []


def test_an_unknown_value_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "run/app/a", b"${run.seed}")
    with pytest.raises(ValueError, match=r"run/app/a: \$\{run\.seed\} is no value of run\.json; expected \$\{run\.instance_id\}"):
        render_run(tmp_path, RUN)
