"""Adapters by program name, through the entry point group `realcli.agents`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from realcli_session.agents.port import AgentAdapter

GROUP = "realcli.agents"


def programs() -> list[str]:
    """Names of the agent programs this installation has adapters for, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def adapter_class(program: str) -> type[AgentAdapter]:
    """The adapter of a program. LookupError names what is installed."""
    for point in entry_points(group=GROUP):
        if point.name == program:
            return cast(type[AgentAdapter], point.load())
    raise LookupError(f"no adapter for agent program {program!r}; installed: {', '.join(programs()) or 'none'}")
