"""Files of the repository that are written from what the programs use: `python -m MODULE --write`, and `--check` for lint."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path


def generate(module: str, source: str, files: Callable[[], Mapping[str, str]], arguments: list[str] | None = None) -> int:
    """Write the files, or say which are not what would be written: exit status 1.

    `module`: who is run; `source`: what the files are written from, for people; `files()`: path from the root of the repository
    -> text.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=f"Files that are written from {source}.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write them")
    what.add_argument("--check", action="store_true", help="fail if one is not what would be written")
    parser.add_argument("--under", type=Path, default=Path(), metavar="FOLDER", help="root of the repository; default: here")
    asked = parser.parse_args(arguments)
    stale = []
    for name, text in files().items():
        path: Path = asked.under / name
        if asked.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path))
    if stale:
        sys.stderr.write(f"{', '.join(stale)}: not what would be written from {source}; run python -m {module} --write\n")
    return 1 if stale else 0


def table_header(first: str, names: Iterable[str]) -> list[str]:
    """The two lines that begin a Markdown table."""
    columns = [first, *names]
    return [table_row(first, columns[1:]), "|" + "---|" * len(columns)]


def table_row(first: str, cells: Iterable[str]) -> str:
    """A line of a Markdown table; a bar in a cell is only text."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (first, *cells)) + " |"
