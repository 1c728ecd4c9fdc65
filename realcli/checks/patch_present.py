"""Operator `patch_present`: the lines the user added stand in the file at the end."""

from __future__ import annotations

from pydantic import ValidationError

from realcli.benchmark.edits import edit_present
from realcli.benchmark.models import Edit
from realcli.checks.model import Arguments, CheckError, Context, SnapshotUnreadable, text_argument
from realcli.scoring.records import HardRecord

OP = "patch_present"


def patch_present(arguments: Arguments, context: Context) -> HardRecord:
    """Every added line of `patch` (an `Edit`) stands in `path` of the named snapshot.

    fail: the file is there without them, or is gone. undecided: there is no such snapshot, or what it holds cannot be read.
    """
    path = text_argument(arguments, "path")
    name = text_argument(arguments, "snapshot")
    try:
        edit = Edit.model_validate(arguments.get("patch"))
    except ValidationError as error:
        raise CheckError(
            f"argument `patch` is {arguments.get('patch')!r}; expected an edit with path and insert: {error}"
        ) from error
    if edit.path != path:
        raise CheckError(f"the edit is of {edit.path}, but the check looks at {path}: bind both to the same file")
    found = context.trajectory.snapshot(name)
    if found is None:
        return HardRecord(
            op=OP, result="undecided", why=f"the ledger has no snapshot `{name}`: the state at that time is not known"
        )
    seq = found[0].seq
    label = f"{name}@{seq}"
    try:
        content = context.snapshots.read(seq, path)
    except SnapshotUnreadable as error:
        return HardRecord(op=OP, result="undecided", events=[seq], snapshot=label, why=f"{path} cannot be read: {error}")
    if content is None:
        return HardRecord(op=OP, result="fail", events=[seq], snapshot=label, why=f"{path} does not exist in snapshot {name}")
    if edit_present(content, edit):
        return HardRecord(
            op=OP, result="pass", events=[seq], snapshot=label,
            why=f"all {len(edit.insert)} lines of the edit stand in {path}",
        )  # fmt: skip
    return HardRecord(op=OP, result="fail", events=[seq], snapshot=label, why=f"lines of the edit are missing from {path}")
