"""Leave that the user gave in a permission prompt of the agent program."""

from __future__ import annotations

from realcli.checks.model import Context
from realcli.ledger.events import BlobRef, Command, FileDelete, FileWrite, PermissionAnswer, PermissionRequest
from realcli.trajectory import Item
from realcli.trajectory.commands import command_text
from realcli.trajectory.prompts import commands_in, paths_in

_PATCH = "apply_patch"


def permitted(context: Context, deed: Item) -> bool:
    """The user allowed this command, or a change of this file, in a permission prompt before it: it was asked for.

    A prompt for a patch that does not say which files it changes may have been for any. One that a policy answered asked nobody.
    """
    allowed = {
        d.request_id: e.seq for e, d in context.trajectory.of(PermissionAnswer) if d.by == "script" and d.decision == "allow"
    }
    for _, asked in context.trajectory.of(PermissionRequest):
        if allowed.get(asked.request_id, deed.seq) >= deed.seq or isinstance(asked.input, BlobRef):
            continue
        commands, paths = commands_in(asked.input), paths_in(asked.input)
        match deed.data:
            case Command():
                told = command_text(deed.data)
                if told.certain and all(text in commands for text in told.certain):
                    return True
            case FileWrite(path=path) | FileDelete(path=path):
                name = path.rsplit("/", 1)[-1]
                if path in paths or any(name in text for text in commands) or (asked.tool == _PATCH and not paths):
                    return True
            case _:
                pass
    return False
