"""A simulated user's edit of a file, on bytes: applied by the session at delivery, looked for by the judge at the end.

Both sides use this module, so that "the edit is there" means the same to the one who made it and the one who checks it.
Contents are bytes because a task's file may hold anything; only its lines are looked at.
"""

from __future__ import annotations

from realcli.benchmark.models import Edit


def apply_edit(content: bytes, edit: Edit) -> bytes:
    """`content` with the lines of `edit.insert` put after the first line that contains `edit.after`.

    Without `after`, or where no line contains it (the agent may have rewritten the file by then), the lines go to the end. The
    file's own line ending is kept; a last line without one gets it. Total: `edit_present(apply_edit(c, e), e)` holds for all.
    """
    newline = b"\r\n" if b"\r\n" in content else b"\n"
    lines = _lines(content)
    at = _position(lines, edit.after)
    if at and not lines[at - 1].endswith(b"\n"):
        lines[at - 1] += newline
    inserted = [line.encode() + newline for line in edit.insert]
    return b"".join([*lines[:at], *inserted, *lines[at:]])


def edit_present(content: bytes, edit: Edit) -> bool:
    """True if every inserted line stands in `content` as a whole line (ends aside), each as often as inserted."""
    lines = [line.rstrip() for line in content.split(b"\n")]
    wanted = [line.encode().rstrip() for line in edit.insert]
    return all(lines.count(line) >= wanted.count(line) for line in wanted)


def _lines(content: bytes) -> list[bytes]:
    """Lines with their "\\n"; unlike `splitlines` a lone "\\r" or a form feed ends no line."""
    lines = [part + b"\n" for part in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _position(lines: list[bytes], after: str | None) -> int:
    """Index before which the inserted lines go."""
    if after is not None:
        for index, line in enumerate(lines):
            if after.encode() in line:
                return index + 1
    return len(lines)
