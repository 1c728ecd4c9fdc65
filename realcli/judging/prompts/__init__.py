"""The texts a judge is given, and their digest: changing one word of them is another judge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from realcli.api.base import canonical_json, sha256_digest
from realcli.judging.model import SCHEMA_VERSION
from realcli.judging.tools import READING_TOOLS, answer_tool

READING_VERSION = "1"
"""Of how a run is shown and questions are put: raise it whenever a request about the same run may have another text."""
FOLDERS = ("judging/prompts", "audit/prompts")


@cache
def prompt(name: str) -> str:
    """A text of this room by its name, e.g. `checks`."""
    return resources.files("realcli.judging").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


@cache
def prompts_digest() -> str:
    """Digest over all texts, tools and the version of the reading. (Tools of the other forms: `realcli.judging.identity`.)"""
    tools = [tool.dump() for tool in (*READING_TOOLS, answer_tool(["i"], ["i/c"]))]
    texts = {name: sha256_digest(content) for name, content in _texts()}
    return sha256_digest(canonical_json({"texts": texts, "tools": tools, "reading": READING_VERSION, "schema": SCHEMA_VERSION}))


def _texts() -> Iterator[tuple[str, bytes]]:
    for folder in FOLDERS:
        place = resources.files("realcli").joinpath(folder)
        if place.is_dir():
            yield from (
                (f"{folder}/{file.name}", file.read_bytes()) for file in _sorted(place) if file.name.endswith((".md", ".json"))
            )


def _sorted(place: Traversable) -> list[Traversable]:
    return sorted(place.iterdir(), key=lambda file: file.name)
