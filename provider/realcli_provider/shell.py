"""Small things that both tool calls and keystrokes are made of."""

from __future__ import annotations

import shlex
from typing import Any

from realcli_provider.script import Write


def as_list(value: Any) -> list[Any]:
    """None: nothing; a single value: a list of it."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def write_command(write: Write) -> str:
    """A command that writes the file."""
    mark = "END_OF_FILE"
    while mark in write.content:
        mark += "_"
    body = write.content if write.content.endswith("\n") else write.content + "\n"
    return f"cat > {shlex.quote(write.path)} <<'{mark}'\n{body}{mark}"
