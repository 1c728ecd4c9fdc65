"""Which parts of a restored root could speak for the tests: named beside the verdict, not judged (trust `system`)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterable, AsyncIterator

from realcli.wire.archive import ArchiveError, ArchiveReader, Member

MAX_NAMES = 200
MAX_NAME = 300
_PATTERNS = re.compile(
    rb"""
      (usr/(local/)?)?s?bin/[^/]+                                      # programs in the usual folders
    | (usr/(local/)?)?lib(32|64|x32)?/(.*/)?(ld-[^/]*|[^/]*\.so(\.[^/]*)?)  # dynamic loaders and libraries
    | etc/(ld\.so\.[^/]*|ld\.so\.conf\.d/.*|profile|profile\.d/.*|bash\.bashrc|environment|passwd|group|shadow|nsswitch\.conf)
    | (root|home/[^/]+)/\.(bashrc|bash_profile|bash_login|profile|zshrc|zshenv|pythonrc.*|inputrc|pydistutils\.cfg)
    | (.*/)?(sitecustomize|usercustomize)\.py | (.*/)?(site|dist)-packages/[^/]+\.(pth|egg-link)
    | (.*/)?(site|dist)-packages/(_?pytest|pluggy)(/.*|\.py)
    | (.*/)?(conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|\.pytest\.ini)
    """,
    re.VERBOSE | re.DOTALL,
)


def is_tool(name: bytes) -> bool:
    """A path (relative to `/`) of something that runs, or is read, before or with any test."""
    return _PATTERNS.fullmatch(name) is not None


class ToolsReplaced:
    """A delta archive on its way, with the names to be listed kept: changed, new and removed ones."""

    def __init__(self, source: AsyncIterable[bytes]) -> None:
        self._source = source
        self.names: list[str] = []

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The archive's bytes as they are. A damaged one is refused where it is put."""
        reader = ArchiveReader()
        async for chunk in self._source:
            with contextlib.suppress(ArchiveError):
                for item in reader.feed(chunk):
                    if isinstance(item, Member) and item.kind != "dir" and len(self.names) < MAX_NAMES and is_tool(item.name):
                        self.names.append("/" + item.name.decode("utf-8", "backslashreplace")[:MAX_NAME])
            yield chunk
