"""What of a sweep has changed since somebody looked, so that a step need not look at all of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Changes:
    """Names of objects that were put or dropped since they were taken last, in the order of their last change; what is there now
    the store says. Whoever reads them calls `taken` once nothing can fail any more: until then they are told again.

    ``lost``: they are not kept any more, and all has to be looked at. That is so once somebody else follows the same sweep, and
    where there are more names than objects: looking at all is cheaper then, and what nobody takes (the sweep is gone) is bounded.
    """

    names: dict[str, None] = field(default_factory=dict)
    lost: bool = False

    def note(self, name: str) -> None:
        """It changed, now."""
        self.names.pop(name, None)
        self.names[name] = None

    def lose(self) -> None:
        """From now on they are not kept."""
        self.lost = True
        self.names.clear()

    def taken(self) -> None:
        """All of them have been looked at."""
        self.names.clear()


class Following:
    """Who follows what: at most one reader of each key."""

    def __init__(self) -> None:
        self._changes: dict[tuple[str, ...], Changes] = {}

    def follow(self, *key: str) -> Changes:
        """From now on. Whoever followed it before loses it."""
        before = self._changes.pop(key, None)
        if before is not None:
            before.lose()
        self._changes[key] = Changes()
        return self._changes[key]

    def note(self, name: str, objects: int, *key: str) -> None:
        """``name`` changed, and there are ``objects`` of the key now."""
        changes = self._changes.get(key)
        if changes is None:
            return
        changes.note(name)
        if len(changes.names) > objects + 1:
            changes.lose()
            del self._changes[key]

    def __len__(self) -> int:
        return len(self._changes)
