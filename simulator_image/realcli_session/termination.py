"""Hands the result to the kubelet. Written once, last; whoever reads it also knows the seal, which is the truth."""

from __future__ import annotations

from pathlib import Path

from realcli.api.termination import MAX_TRIAL_BYTES, Termination

MAX_MESSAGE = 400


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    """At most `limit` characters, on one line, cut in the middle so that both ends stay readable."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    half = (limit - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"


def report(message: Termination, path: Path) -> None:
    """Write the message in one call; the file exists already in a pod."""
    path.write_bytes(message.encode(MAX_TRIAL_BYTES))
