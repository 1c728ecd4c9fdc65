"""Kinds of text a benchmark's files are made of: paths, lines, things said."""

from __future__ import annotations

import posixpath
from typing import Annotated

from pydantic import AfterValidator, StringConstraints


def _absolute(path: str) -> str:
    if not path.startswith("/") or posixpath.normpath(path) != path or path == "/":
        raise ValueError(f"{path!r} is not an absolute, normal path below / (no trailing slash, no '.' or '..')")
    return path


def _relative(path: str) -> str:
    if path.startswith(("/", "../")) or posixpath.normpath(path) != path or path in (".", ".."):
        raise ValueError(f"{path!r} is not a relative, normal path (no leading slash, no '.' or '..')")
    return path


def _one_line(text: str) -> str:
    if not text.encode("utf-8", "replace").strip() or "\n" in text or "\r" in text:
        raise ValueError(f"{text!r} is not one line with something in it")
    return text


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""As ledger and snapshots write paths: another spelling of the same file would never be found there."""
RelativePath = Annotated[str, AfterValidator(_relative)]
Line = Annotated[str, AfterValidator(_one_line)]
Said = Annotated[str, StringConstraints(pattern=r"\S")]
"""A text that says something."""
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
"""A name inside a script; it becomes part of source ids such as `slice:<id>`, so it holds no colon."""
