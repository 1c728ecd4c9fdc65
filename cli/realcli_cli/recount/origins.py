"""Runs that another sweep has made (`spec.from`): where they lie in the copy, and whether they are those of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from realcli.api.base import sha256_digest
from realcli.api.faults import first_fault
from realcli.ledger.seals import VerifySeal
from realcli.scoring.sources import Source, group_digest
from realcli_cli.main import UserError

Json = Any


def origins(root: Path, source: Json, number: int, ordinals: list[int], wrong: list[str]) -> dict[int, Source]:
    """Where the runs of a group were made, by ordinal; `source`: what the lock says. {} and a line in `wrong`: not known."""
    found: dict[int, Source] = {}
    for ordinal in sorted(ordinals):
        path = root / "trials" / f"{ordinal:05d}" / "source.json"
        name = path.relative_to(root)
        try:
            found[ordinal] = Source.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            wrong.append(f"{name} does not exist")
        except ValidationError as error:
            wrong.append(f"{name} is no Source of this version: {first_fault(error)}")
    if len(found) != len(ordinals):
        return {}
    made, pinned = group_digest([found[ordinal] for ordinal in sorted(found)]), source["groups"][number]
    if made != pinned:
        wrong.append(
            f"trials/{min(found):05d}/source.json and those of its group have the digest {made}, sweep.json says {pinned}"
        )
        return {}
    return found


def folder_of(root: Path, key: str) -> Path:
    """The copy of an attempt of another sweep: below a folder above this sweep's, by its key or by the part from `sweeps/` on."""
    short = key[key.find("sweeps/") :] if "sweeps/" in key else key
    for above in root.resolve().parents:
        for name in (key, short):
            if (above / name).is_dir():
                return above / name
    sweep = short.split("/trials/")[0]
    raise UserError(
        f"the runs of this sweep lie in {sweep}, which is not here: copy that folder beside this one's, as in storage"
    )


def verdict_findings(folder: Path, anchor: str | None, work_seal: str) -> Iterator[str]:
    """What is wrong with a verify that lies apart from the work it verified."""
    path = folder / "seal.json"
    if not path.is_file():
        yield f"{folder.name}/seal.json does not exist"
        return
    raw = path.read_bytes()
    if anchor is None or sha256_digest(raw) != anchor:
        yield f"{folder.name}/seal.json has the digest {sha256_digest(raw)}, its group says {anchor}"
    try:
        seal = VerifySeal.model_validate_json(raw)
    except ValidationError as error:
        yield f"{folder.name}/seal.json is not a verify seal: {first_fault(error)}"
        return
    if not seal.intact():
        yield f"{folder.name}/seal.json: its checksum is not that of its content"
    if seal.work_seal != work_seal:
        yield f"{folder.name}/seal.json verified work seal {seal.work_seal}, the run's is {work_seal}"
    for item in seal.objects:
        there = folder / item.path
        if not there.is_file():
            yield f"{folder.name}/{item.path} is sealed but not there"
        elif sha256_digest(there.read_bytes()) != f"sha256:{item.sha256}":
            yield f"{folder.name}/{item.path} is not what was sealed"
