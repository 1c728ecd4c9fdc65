"""What a command may have run that its text does not show. An execution record shows it; a tool text does not."""

from __future__ import annotations

from realcli.checks.model import Context
from realcli.ledger.events import Command
from realcli.trajectory import Item
from realcli.trajectory.commands import command_text


def hidden(context: Context) -> list[Item]:
    """Commands of the window, known from tool calls alone, that may have run others: shells, scripts, interpreters, aliases."""
    return [
        item for item in context.window.items
        if isinstance(item.data, Command) and item.data.record == "tool_text" and command_text(item.data).indirect
    ]  # fmt: skip
