"""The pinned Claude Code program."""

from __future__ import annotations

from pathlib import Path

from tests.support.npm import AGENTS, installed

PINNED = AGENTS / "claude-code"


def claude_code_dir() -> Path:
    """The directory that holds the executable `claude`: what an agent image has at /agent."""
    program = installed("claude-code") / "@anthropic-ai" / "claude-code-linux-x64"
    (program / "claude").chmod(0o755)
    return program
