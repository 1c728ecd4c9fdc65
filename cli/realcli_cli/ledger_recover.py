"""Copies the spool out of a session that waits for storage, by `kubectl exec` with the person's own rights."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from realcli.ledger.spool import CAME_BACK, NOT_BLOCKED, SPOOL_FILE
from realcli_cli.main import UserError

SESSION = "session"
EXPORT = ("python3", "-m", "realcli_session.spool")
_NAME = re.compile(r"spool\.json|run\.json|state\.tar\.zst|ledger/[0-9]{6,}\.jsonl|blobs/[0-9a-f]{64}|snapshots/[0-9]+\.tar\.zst")


def recover(trial: str, status: dict[str, Any], namespace: str | None, target: Path) -> int:
    """Copy into `target`, which must not exist; the number of files. UserError says why nothing was copied."""
    if target.exists():
        raise UserError(f"{target} exists already; --to names another directory")
    pod, phase = status.get("pod"), status.get("phase", "Pending")
    if phase != "Working" or not pod:
        raise UserError(f"trial {trial} has no session that could wait for storage (phase {phase}, pod {pod or 'none'})")
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UserError("kubectl is not installed; the spool is copied by `kubectl exec`")
    where = ["-n", namespace] if namespace else []
    command = [kubectl, "exec", *where, str(pod), "-c", SESSION, "--", *EXPORT]
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            count, broken = _unpack(process.stdout, part)
            process.stdout.read()
            said = process.stderr.read().decode(errors="replace").strip()
        _refuse(process.returncode, said, trial, str(pod))
        if broken is not None:
            raise UserError(f"the copy of pod {pod} broke off: {broken}; try again")
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return count


def _unpack(stream: Any, folder: Path) -> tuple[int, str | None]:
    """(files, what broke). Only regular files with names of an attempt are taken."""
    count = 0
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if not member.isreg() or not _NAME.fullmatch(member.name):
                    return count, f"it holds {member.name!r}, which is no file of an attempt"
                source = archive.extractfile(member)
                assert source is not None
                path = folder / member.name
                path.parent.mkdir(exist_ok=True)
                with path.open("xb") as out:
                    shutil.copyfileobj(source, out)
                count += 1
    except (tarfile.TarError, EOFError, FileExistsError) as error:
        return count, str(error) or type(error).__name__
    if not (folder / SPOOL_FILE).exists():
        return count, f"it holds no {SPOOL_FILE}"
    return count, None


def _refuse(code: int, said: str, trial: str, pod: str) -> None:
    if code == 0:
        return
    if code == NOT_BLOCKED:
        raise UserError(f"trial {trial}: nothing to recover: {_last(said)}")
    if code == CAME_BACK:
        raise UserError(f"trial {trial}: nothing to recover any more: {_last(said)}")
    low = said.lower()
    if "notfound" in low or "not found" in low:
        raise UserError(f"trial {trial}: there is no pod {pod} (any more): {said}")
    if "forbidden" in low:
        raise UserError(f"trial {trial}: you may not exec into pod {pod} (create pods/exec in its namespace): {said}")
    raise UserError(f"trial {trial}: kubectl exec into pod {pod} failed ({code}): {said}")


def _last(said: str) -> str:
    """What the exporter said; kubectl adds a line of its own."""
    return next((line for line in said.splitlines() if not line.startswith("command terminated")), said)
