"""The per-run files of a task: run/ and interaction/traps/ of the private bundle, mirrored at "/", filled from run.json."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from realcli.benchmark.bundles import File, read_tree
from realcli.ledger.seals import RunJson

RUN = "run"
TRAPS = "interaction/traps"


class PlacedFile(NamedTuple):
    """A file for the container: absolute path, mode (0o644 or 0o755), content; root-owned."""

    path: str
    mode: int
    content: bytes


def render_run(tree: Path, run: RunJson) -> list[PlacedFile]:
    """Files of `tree`/run (`tree` = an unpacked private bundle) in path order. ValueError for an unknown `${run.…}`."""
    return [_placed(file, RUN, run) for file in read_tree(tree, [RUN])]


def render_traps(tree: Path, run: RunJson) -> list[PlacedFile]:
    """The same for interaction/traps/: static plants, put into the container in both modes, not in verify."""
    return [_placed(file, TRAPS, run) for file in read_tree(tree, [TRAPS])]


def render(content: bytes, run: RunJson, name: str) -> bytes:
    """`${run.instance_id}` and `${run.nonce}` replaced; `name` is for the error about any other `${run.…}`."""
    filled = content.replace(b"${run.instance_id}", run.instance_id.encode()).replace(b"${run.nonce}", run.nonce.encode())
    rest = filled.find(b"${run.")
    if rest >= 0:
        word = filled[rest : rest + 40].split(b"}")[0].decode(errors="replace")
        raise ValueError(f"{name}: {word}}} is no value of run.json; expected ${{run.instance_id}} or ${{run.nonce}}")
    return filled


def _placed(file: File, part: str, run: RunJson) -> PlacedFile:
    return PlacedFile(file.path.removeprefix(part), file.mode, render(file.content, run, file.path))
