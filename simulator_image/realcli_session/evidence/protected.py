"""Places an agent has no business in: the runner's own files and where the tests will lie (outcome `Tampered`).

They are read-only or absent in a pod, so whatever is different at the end was not done by accident. Looked at twice, without
reading contents: before the agent starts, and when nothing of it runs any more.
"""

from __future__ import annotations

from typing import Final

from realcli_session.runner.port import RunnerPort, ScanEntry

GLOBS: Final = (
    "/opt/realcli/bin/**", "/opt/realcli/lib/**", "/opt/realcli/runner/**", "/run/realcli/**",
    "/tests", "/tests/**", "/logs/verifier", "/logs/verifier/**",
)  # fmt: skip
MAX_FILES: Final = 50_000
SECONDS: Final = 60.0

Facts = tuple[str, int, int, int, int, int]


class ProtectedPlaces:
    """`await start()` in setup, `await changed()` after quiesce."""

    def __init__(self, runner: RunnerPort) -> None:
        self._runner = runner
        self._before: dict[str, Facts] | None = None

    async def start(self) -> None:
        """Remember what is there."""
        found, whole = await self._look()
        self._before = found if whole else None

    async def changed(self) -> list[str]:
        """Paths that came, went or are different, sorted. A look that was cut proves what it saw, and nothing of the rest."""
        after, whole = await self._look()
        before = self._before
        if before is None:
            return []
        looked_at = before.keys() | after.keys() if whole else after.keys()
        return sorted(path for path in looked_at if before.get(path) != after.get(path))

    async def _look(self) -> tuple[dict[str, Facts], bool]:
        scan = await self._runner.scan(GLOBS, max_files=MAX_FILES, max_bytes=0, hash_limit=0, budget=SECONDS)
        return {entry.path: _facts(entry) for entry in scan.entries}, scan.complete


def _facts(entry: ScanEntry) -> Facts:
    """A directory's size and time are those of its entries, which are listed themselves."""
    size, time = (0, 0) if entry.kind == "dir" else (entry.size, entry.mtime_ns)
    return entry.kind, size, entry.mode, entry.uid, entry.gid, time
