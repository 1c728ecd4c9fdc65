"""Which records a report was made of: those of today, or those of an earlier round.

A group that ran invalid trials anew (`spec.retryInvalid`) has a group file of a higher number; a judge may be calibrated later.
Both make another report; the one from before stays, and is held against what there was then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from realcli_cli.recount.digests import digest

Json = Any


class Round(NamedTuple):
    """What a report counts from: group files up to a number, with the judge's gate or without."""

    most: int | None = None  # None: the highest of every group
    gated: bool = True
    newer: tuple[str, ...] = ()  # records that came after the report

    @property
    def superseded(self) -> bool:
        """Another report was made of what came later, or could be."""
        return bool(self.newer)


def key_of(lock: Json, below: str) -> str:
    """Where an object of the sweep lies in storage: a report's name is taken over these keys, wherever the copy lies."""
    sweep, prefix = lock["sweep"], lock["spec"]["storage"].get("prefix", "")
    folder = f"{sweep['name']}-{sweep['uid'].replace('-', '')[:8]}"
    parts = [prefix.strip("/"), "sweeps", sweep["namespace"], folder, below]
    return "/".join(part for part in parts if part)


def input_digest(objects: Iterable[tuple[str, str]]) -> str:
    """A report's name, of the keys and digests of all it counts from."""
    listed = sorted([key, value] for key, value in objects)
    return digest(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode())


def numbered(folder: Path) -> list[int]:
    """Numbers of the group files in a folder, in order."""
    return sorted(int(p.stem[6:]) for p in folder.glob("group-*.json") if p.stem[6:].isdecimal() and p.stem[6:].isascii())


def gate_of(root: Path, lock: Json, summary: Json) -> tuple[str, Path] | None:
    """(key, file) of the judge's gate, which lies beside `sweeps/`; None: there is none."""
    name = f"calibrations/{summary['judge']['digest'][7:15]}/gate.json"
    prefix = lock["spec"]["storage"].get("prefix", "").strip("/")
    path = next((p / name for p in root.resolve().parents if (p / name).is_file()), None)
    return None if path is None else (f"{prefix}/{name}".lstrip("/"), path)


def round_of(root: Path, lock: Json, summary: Json) -> Round:
    """The round whose records have the report's digest; today's where none has."""
    beside = gate_of(root, lock, summary)
    gate = [] if beside is None else [(beside[0], digest(beside[1].read_bytes()))]
    judgements = root / "judgements" / summary["judge"]["digest"][7:15]
    gone = {one["task"] for one in summary.get("withdrawn") or []}
    names, tasks = (sorted(one["name"] for one in lock[what]) for what in ("configurations", "tasks"))
    folders = [judgements / name / task for name in names for task in tasks if task not in gone]
    found = {folder: numbers for folder in folders if (numbers := numbered(folder))}
    lists = [path for path in sorted(judgements.glob("withdrawn-*.json")) if gone and _list(path) == summary["withdrawn"]][:1]
    highest = max((numbers[-1] for numbers in found.values()), default=1)
    for most in range(highest, 0, -1):
        paths = [*lists]
        for folder, numbers in found.items():
            if kept := [number for number in numbers if number <= most]:
                paths += _records(folder, kept[-1])
        objects = [
            (key_of(lock, path.relative_to(root).as_posix()), digest(path.read_bytes())) for path in paths if path.is_file()
        ]
        newer = [f"{f.relative_to(root).as_posix()}/group-{n}.json" for f, ns in found.items() for n in ns if n > most]
        if input_digest([*objects, *gate]) == summary["inputDigest"]:
            return Round(most, newer=tuple(newer))
        if gate and input_digest(objects) == summary["inputDigest"]:
            return Round(most, gated=False, newer=(*newer, gate[0][0]))
    return Round()


def _list(path: Path) -> Json:
    return (_json(path) or {}).get("tasks")


def _records(folder: Path, number: int) -> Iterator[Path]:
    """A group file and the records it names that a report reads; what is damaged is told by whoever reads it whole."""
    yield folder / f"group-{number}.json"
    group = _json(folder / f"group-{number}.json") or {}
    names = [group.get("failures")]
    for member in group.get("members") or []:
        if (member.get("mode"), member.get("phase")) == ("COLLAB", "Sealed") and member.get("workSeal"):
            names += [(group.get(kind) or {}).get(str(member.get("repeat"))) for kind in ("judgements", "audits")]
    yield from (folder / name for name in names if isinstance(name, str) and Path(name).name == name)


def _json(path: Path) -> Json:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
