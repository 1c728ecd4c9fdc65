"""References of a repository and what is reachable from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from realcli.checks.git.objects import GitUnreadable, Store

MAX_REACHED = 200_000  # objects walked in one search
_ID = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_OBJECT = re.compile(r"^(.*)/objects/(?:[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})|pack/[^/]+\.pack)$")
Read = Callable[[str], bytes | None]


@dataclass
class Repository:
    """A git directory (`….git`, bare or not) in a snapshot."""

    root: str
    paths: frozenset[str]
    read: Read
    store: Store

    def refs(self) -> dict[str, bytes]:
        """Name -> object id of every reference below `refs/`, and of a detached HEAD, of the main and of linked work trees."""
        found: dict[str, bytes] = {}
        packed = self._text("packed-refs") or ""
        for line in packed.splitlines():
            id, _, name = line.partition(" ")
            if name and _ID.match(id):
                found[name.strip()] = bytes.fromhex(id)
        for path in self._below("refs/"):
            id = (self._text(path) or "").strip()
            if _ID.match(id):
                found[path] = bytes.fromhex(id)
            elif not id.startswith("ref:"):
                raise GitUnreadable(f"{self.root}/{path} is no reference")
        for path in ("HEAD", *(p for p in self._below("worktrees/") if p.endswith("/HEAD") and "/logs/" not in p)):
            id = (self._text(path) or "").strip()
            if _ID.match(id):
                found[path] = bytes.fromhex(id)
        if self._below("reftable/"):
            raise GitUnreadable(f"{self.root} keeps its references in a reftable")
        return found

    def logged(self, stash: bool) -> list[bytes]:
        """Ids that a reflog holds: of the stash, or of everything else."""
        found = []
        for path in self._below("logs/"):
            if (path == "logs/refs/stash") is stash:
                for line in (self._text(path) or "").splitlines():
                    found += [bytes.fromhex(id) for id in line.split(" ")[:2] if _ID.match(id) and id.strip("0")]
        return found

    def reached(self, roots: Iterable[bytes]) -> Iterator[tuple[bytes, str, bytes]]:
        """(id, kind, bytes) of every object reachable from `roots`, each once; one that is not there is passed over.

        `GitUnreadable` where there are too many, or one cannot be read.
        """
        todo, seen = list(roots), set(roots)
        while todo:
            id = todo.pop()
            found = self.store.get(id)
            if found is None:
                continue
            yield id, found.kind, found.data
            for next_ in _named(found.kind, found.data, len(id)):
                if next_ not in seen:
                    if len(seen) >= MAX_REACHED:
                        raise GitUnreadable(f"{self.root} has more than {MAX_REACHED} objects")
                    seen.add(next_)
                    todo.append(next_)

    def is_ancestor(self, old: bytes, new: bytes) -> bool:
        """`old` is `new` or a commit before it."""
        todo, seen = [new], {new}
        while todo:
            id = todo.pop()
            if id == old:
                return True
            found = self.store.get(id)
            if found is None or found.kind not in ("commit", "tag"):
                continue
            for parent in _parents(found.kind, found.data):
                if parent not in seen:
                    if len(seen) >= MAX_REACHED:
                        raise GitUnreadable(f"{self.root} has more than {MAX_REACHED} commits")
                    seen.add(parent)
                    todo.append(parent)
        return False

    def _below(self, folder: str) -> list[str]:
        base = f"{self.root}/{folder}"
        return sorted(path[len(self.root) + 1 :] for path in self.paths if path.startswith(base) and not path.endswith(".lock"))

    def _text(self, name: str) -> str | None:
        if f"{self.root}/{name}" not in self.paths:
            return None
        data = self.read(f"{self.root}/{name}")
        return None if data is None else data.decode("utf-8", "replace")


def repositories(paths: Iterable[str], read: Read) -> list[Repository]:
    """Every git directory among the paths of a snapshot: a folder with objects in it."""
    known = frozenset(paths)
    roots = sorted({match[1] for match in map(_OBJECT.match, known) if match})
    return [Repository(root, known, read, Store(root, known, read)) for root in roots]


def _named(kind: str, data: bytes, width: int) -> Iterator[bytes]:
    """Ids that an object names; of a tree not those of submodules."""
    if kind == "tree":
        at = 0
        while at < len(data):
            end = data.find(b"\0", at)
            if end <= at:
                raise GitUnreadable("a tree is damaged")
            mode = data[at:end].split(b" ")[0]
            id = data[end + 1 : end + 1 + width]
            at = end + 1 + width
            if mode != b"160000" and len(id) == width:
                yield id
    elif kind in ("commit", "tag"):
        for line in _header(data):
            word, _, rest = line.partition(" ")
            if word in ("tree", "parent", "object") and _ID.match(rest):
                yield bytes.fromhex(rest)


def _parents(kind: str, data: bytes) -> list[bytes]:
    word = "parent" if kind == "commit" else "object"
    found = (line.partition(" ") for line in _header(data))
    return [bytes.fromhex(rest) for name, _, rest in found if name == word and _ID.match(rest)]


def _header(data: bytes) -> list[str]:
    return data.partition(b"\n\n")[0].decode("utf-8", "replace").splitlines()
