"""The recorded runs of tests/data/ledgers, as hard checks read them."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import zstandard

from realcli.benchmark.models import Oracle, Script
from realcli.benchmark.run_files import canary_values
from realcli.ledger.events import EVENT, BlobRef
from realcli.ledger.seals import RunJson
from realcli.trajectory import Trajectory
from realcli_judge.evidence import entry_of, paths_of

FOLDER = Path(__file__).resolve().parents[1] / "data" / "ledgers"
TASK = FOLDER / "suite" / "tasks" / "workshop" / "interaction"
AGENTS = ("claude-code", "codex", "terminus-2")
BEHAVIOURS = tuple(sorted(path.stem for path in (FOLDER / "behaviours").glob("*.yaml")))


@dataclass(frozen=True)
class Recorded:
    """One run: also its `Blobs` and its `SnapshotReader`."""

    files: dict[str, bytes]

    @cached_property
    def trajectory(self) -> Trajectory:
        segments = (self.files[name] for name in sorted(self.files) if name.startswith("ledger/"))
        return Trajectory.from_events(EVENT.validate_json(line) for segment in segments for line in segment.splitlines())

    @cached_property
    def canaries(self) -> dict[str, str]:
        return dict(canary_values(oracle(), RunJson.model_validate_json(self.files["run.json"])))

    @cached_property
    def _states(self) -> dict[int, dict[str, bytes | None]]:
        found = {}
        for name, data in self.files.items():
            if name.startswith("snapshots/"):
                found[int(name[10:].split(".")[0])] = _held(data)
        return found

    def state(self, seq: int) -> dict[str, bytes | None]:
        return self._states[seq]


def _held(archive: bytes) -> dict[str, bytes | None]:
    """All that a snapshot holds, in one reading; links as the product resolves them."""
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(archive)
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        files = {
            "/" + member.name.removeprefix("./").strip("/"): file.read()
            for member in tar
            if member.isreg() and (file := tar.extractfile(member)) is not None
        }
    return {path: files[path] if path in files else entry_of(archive, path) for path in paths_of(archive)}


@dataclass(frozen=True)
class Snapshots:
    run: Recorded

    def read(self, seq: int, path: str) -> bytes | None:
        return self.run.state(seq).get(path)

    def paths(self, seq: int) -> list[str]:
        return list(self.run.state(seq))


@dataclass(frozen=True)
class Blobs:
    run: Recorded

    def read(self, ref: BlobRef) -> bytes | None:
        return self.run.files.get(f"blobs/{ref.blob}")


@cache
def recorded(agent: str, behaviour: str) -> Recorded:
    data = zstandard.ZstdDecompressor().decompress(
        (FOLDER / f"{agent}-{behaviour}.tar.zst").read_bytes(), max_output_size=1 << 28
    )
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}
    return Recorded(files)


@cache
def oracle() -> Oracle:
    return Oracle.model_validate_json((TASK / "oracle_contract.json").read_bytes())


@cache
def script() -> Script:
    return Script.model_validate_json((TASK / "script.json").read_bytes())
