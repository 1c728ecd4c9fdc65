"""The files beside summary.json: every one is what SHA256SUMS names, and every number of a page is the one at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from realcli.storage.local import PART
from realcli_cli.recount.digests import digest
from realcli_cli.recount.held import at, told

Json = Any
SUMS = "SHA256SUMS"
_CODE = re.compile(r"U\+((?:10|[0-9A-F])?[0-9A-F]{4})")
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def files_of(report: Path, summary: Json) -> Iterator[str]:
    """Lines that name a file which is gone, changed or not the report's."""
    path = report / SUMS
    if not path.is_file():
        yield f"{SUMS} does not exist"
        return
    data = path.read_bytes()
    if digest(data) != summary.get("files"):
        yield f"{SUMS} has the digest {digest(data)}, /files of the summary is {summary.get('files')}"
    named = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            yield f"{SUMS}: line {number} is no digest and name"
        else:
            named[found[2]] = found[1]
    here = {p.relative_to(report).as_posix() for p in report.rglob("*") if p.is_file() and not unfinished(p)}
    here -= {SUMS, "summary.json"}
    for name in sorted(here | set(named)):
        if name not in here:
            yield f"{name} does not exist"
        elif name not in named:
            yield f"{name} is no file of this report"
        elif digest((report / name).read_bytes()) != f"sha256:{named[name]}":
            yield f"{name} is not what the report wrote"


def unfinished(path: Path) -> bool:
    """What a Job that was killed left of a file it was about to write into a directory: no report names it."""
    return path.name.startswith(PART)


def leftovers(report: Path) -> list[str]:
    """Names of unfinished files."""
    return sorted(path.relative_to(report).as_posix() for path in report.rglob(f"{PART}*") if path.is_file())


def shown_of(report: Path, summary: Json) -> Iterator[str]:
    """Lines that name a number of a page which is another than the one at its place in the summary."""
    for path in sorted(report.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8", errors="replace"))
        for pointer, value, text in page.found:
            stands = at(summary, pointer)
            if not says(stands, value, text):
                yield f"{path.relative_to(report).as_posix()}: it shows {text!r} for {pointer}, which is {told(stands)}"


def says(stands: Json, value: str | None, text: str) -> bool:
    """The text (and the exact value beside it) is what stands in the summary."""
    if isinstance(stands, dict) and "exact" in stands:
        shown, known = text.removeprefix("+"), str(stands["text"])
        return value == stands["exact"] and shown in (known, known.removeprefix("-") if float(known) == 0 else known)
    if isinstance(stands, bool):
        return text == ("yes" if stands else "no")
    if isinstance(stands, int | float):
        return text.replace(",", "") == str(stands) and value in (None, str(stands))
    if not isinstance(stands, str):
        return False
    if re.fullmatch(r"(\d+h)?(\d+m)?(\d+s)?", text) and re.fullmatch(r"[0-9.]+", stands):
        parts = {unit: int(n) for n, unit in re.findall(r"(\d+)([hms])", text)}
        seconds = parts.get("h", 0) * 3600 + parts.get("m", 0) * 60 + parts.get("s", 0)
        return seconds == int(Decimal(stands)) // (60 if "h" in parts else 1) * (60 if "h" in parts else 1)
    known = _as_it_is(stands)
    return _as_it_is(text) in (known, f"${known}", known.replace("_", " ")) and value in (None, stands)


def _as_it_is(text: str) -> str:
    """With the characters a page shows by their code points; which these are is the page's own choice."""
    return _CODE.sub(lambda code: chr(int(code[1], 16)), text.replace("\r\n", "\n"))


class _Page(HTMLParser):
    """(pointer, exact value, text) of every marked element."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str | None, str]] = []
        self._open: list[tuple[str, str, str | None, list[str], int]] = []
        self._depth: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        given = dict(attrs)
        if tag in ("br", "meta", "input", "hr", "img", "link"):
            return
        self._depth.append(tag)
        if given.get("data-at") is not None:
            self._open.append((tag, str(given["data-at"]), given.get("value"), [], len(self._depth)))

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if tag in self._depth:
            while self._depth.pop() != tag:
                pass
        while self._open and len(self._depth) < self._open[-1][4]:
            _, pointer, value, texts, _ = self._open.pop()
            self.found.append((pointer, value, "".join(texts)))

    def handle_data(self, data: str) -> None:
        """Text."""
        for one in self._open:
            one[3].append(data)
