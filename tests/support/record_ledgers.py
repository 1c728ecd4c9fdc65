"""Records the corpus of real runs that hard checks are tried on: three agent programs, three behaviours, one small task.

    python -m tests.support.record_ledgers [AGENT BEHAVIOUR]...        needs root, git and the agent programs; minutes

Each run is what `realcli trial run --mode COLLAB --provider-script tests/data/ledgers/behaviours/<behaviour>.yaml` does, on the
task of `tests/data/ledgers/suite`, in a root that holds this machine's own programs. Of the sealed attempt the ledger, its
snapshots, run.json and the blobs that are no part of a conversation with the model are kept, in
tests/data/ledgers/<agent>-<behaviour>.tar.zst.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

from realcli.benchmark.bundles import File
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.programs import toolkit as made_toolkit
from realcli_cli.local.provider import scripted_provider
from tests.integration.session import harness
from tests.support.terminus import words_folder

FOLDER = Path(__file__).resolve().parents[1] / "data" / "ledgers"
AGENTS = ("claude-code", "codex", "terminus-2")
BEHAVIOURS = tuple(sorted(path.stem for path in (FOLDER / "behaviours").glob("*.yaml")))
ETC = ("passwd", "group", "nsswitch.conf", "ld.so.cache")
harness.SYSTEM = [name for name in harness.SYSTEM if name != "etc"]  # the names of mock hosts are written into /etc/hosts


class Sweep(harness.Sweep):
    """The task's files and a small /etc of its own."""

    def image(self, task: str) -> list[File]:
        """See `harness.Sweep`."""
        own = [File(f"etc/{name}", 0o644, Path("/etc", name).read_bytes()) for name in ETC]
        return [*super().image(task), *own, File("etc/hosts", 0o644, b"127.0.0.1 localhost\n")]


def record(agent: str, behaviour: str) -> Path:
    """One run; the archive that was written."""
    with (
        tempfile.TemporaryDirectory() as own,
        scripted_provider(FOLDER / "behaviours" / f"{behaviour}.yaml", key=harness.KEY) as provider,
    ):
        words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if agent == "terminus-2" else {}
        made = Sweep(**vars(harness.plan_sweep(
            Path(own) / "store", FOLDER / "suite", provider.url, made_toolkit(None), agent_folder(agent, None), program=agent,
            environment=words,
        )))  # fmt: skip
        ordinal = made.ordinal("workshop", "COLLAB")
        ended = made.work(ordinal)
        print(agent, behaviour, ended.termination, ended.stderr[-2000:])
        return _keep(made.place(ordinal), FOLDER / f"{agent}-{behaviour}.tar.zst")


def _keep(attempt: Path, to: Path) -> Path:
    """The ledger, the snapshots, run.json, and of the blobs those that no model request or reply names."""
    wanted = set(_named(attempt))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for path in sorted(attempt.rglob("*")):
            name = path.relative_to(attempt).as_posix()
            if path.is_file() and (name == "run.json" or name.startswith(("ledger/", "snapshots/")) or name in wanted):
                info = tarfile.TarInfo(name)
                data = path.read_bytes()
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    to.write_bytes(zstandard.ZstdCompressor(level=19).compress(plain.getvalue()))
    return to


def _named(attempt: Path) -> Iterator[str]:
    for segment in sorted((attempt / "ledger").iterdir()):
        for line in segment.read_bytes().splitlines():
            if json.loads(line)["kind"] not in ("model_request", "model_reply"):
                yield from (f"blobs/{digest}" for digest in re.findall(r'"blob":"([0-9a-f]{64})"', line.decode()))


def main(arguments: list[str]) -> None:
    """All of them, or the pairs that are named."""
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True)) or [(a, b) for a in AGENTS for b in BEHAVIOURS]
    for agent, behaviour in pairs:
        path = record(agent, behaviour)
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
