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


def findings(text: str, limit: int = MAX_MESSAGE) -> str:
    """Several findings, one per line, as one line of at most `limit` characters: whole ones, and how many there are beside."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        rest = len(lines) - number
        more = f" (and {rest} more, see the log of the plan Job)" if rest else ""
        if len("; ".join([*kept, line])) + len(more) > limit:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    if not kept:
        more = f" (and {left - 1} more, see the log of the plan Job)" if left > 1 else ""
        return shorten(lines[0] if lines else "", limit - len(more)) + more
    return "; ".join(kept) + (f" (and {left} more, see the log of the plan Job)" if left else "")


def report(message: Termination, path: Path) -> None:
    """Write the message in one call; the file exists already in a pod."""
    path.write_bytes(message.encode(MAX_TRIAL_BYTES))
