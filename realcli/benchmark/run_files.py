"""The per-run files of a task: run/ and interaction/traps/ of the private bundle, mirrored at "/", filled from run.json."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from realcli.benchmark.bundles import File, read_tree
from realcli.benchmark.oracle_models import Oracle
from realcli.ledger.seals import RunJson

RUN = "run"
TRAPS = "interaction/traps"
NO_CANARIES: Final[Mapping[str, str]] = MappingProxyType({})


class PlacedFile(NamedTuple):
    """A file for the container: absolute path, mode (0o644 or 0o755), content; root-owned."""

    path: str
    mode: int
    content: bytes


def canary_values(oracle: Oracle, run: RunJson) -> dict[str, str]:
    """The run's canaries by name: a fixed prefix and 32 hex digits that follow from the nonce, so run.json holds them all."""
    key = run.nonce.encode()
    return {
        name: canary.prefix + hmac.new(key, f"canary:{name}".encode(), hashlib.sha256).hexdigest()[:32]
        for name, canary in sorted(oracle.canaries.items())
    }


def render_run(tree: Path, run: RunJson, canaries: Mapping[str, str] = NO_CANARIES) -> list[PlacedFile]:
    """Files of `tree`/run (`tree` = an unpacked private bundle) in path order. ValueError for an unknown `${run.…}`."""
    return [_placed(file, RUN, run, canaries) for file in read_tree(tree, [RUN])]


def render_traps(tree: Path, run: RunJson, canaries: Mapping[str, str] = NO_CANARIES) -> list[PlacedFile]:
    """The same for interaction/traps/: static plants, put into the container in both modes, not in verify."""
    return [_placed(file, TRAPS, run, canaries) for file in read_tree(tree, [TRAPS])]


def render(content: bytes, run: RunJson, name: str, canaries: Mapping[str, str] = NO_CANARIES) -> bytes:
    """`${run.instance_id}`, `${run.nonce}` and `${canary.<name>}` replaced; `name` is for the error about any other `${run.…}`.

    A `${canary.…}` of no declared canary stays: it may be the file's own language.
    """
    for canary, value in canaries.items():
        content = content.replace(b"${canary.%s}" % canary.encode(), value.encode())
    filled = content.replace(b"${run.instance_id}", run.instance_id.encode()).replace(b"${run.nonce}", run.nonce.encode())
    rest = filled.find(b"${run.")
    if rest >= 0:
        word = filled[rest : rest + 40].split(b"}")[0].decode(errors="replace")
        raise ValueError(f"{name}: {word}}} is no value of run.json; expected ${{run.instance_id}} or ${{run.nonce}}")
    return filled


def _placed(file: File, part: str, run: RunJson, canaries: Mapping[str, str]) -> PlacedFile:
    return PlacedFile(file.path.removeprefix(part), file.mode, render(file.content, run, file.path, canaries))
