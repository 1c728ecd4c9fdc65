"""An API server in memory: resourceVersions, uid checks, 409, an event log with watches, ownership.

For unit tests. It keeps the history between LIST and WATCH like the real one, so it neither hides nor invents lost
events. Faults are asked for by name: `fail`, `end_watches`, `compact`, `expire_continue_tokens`, `mute_watches`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import orjson

from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.errors import AlreadyExists, Conflict, Gone, Invalid, KubeError, NotFound, Stale
from realcli_operator.kube.names import RESOURCES, Kind
from realcli_operator.kube.source import RawPage
from realcli_operator.kube.views import Json

_BOOKMARKED: Final = {kind.value: (r.api_version, r.api_kind) for kind, r in RESOURCES.items()}


J = TypeVar("J")


def copied(value: J) -> J:
    """A copy of JSON that shares nothing; all that the fake takes and gives is one."""
    if isinstance(value, dict):
        return cast(J, {key: copied(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return cast(J, [copied(item) for item in value])
    return value


@dataclass(frozen=True, slots=True)
class Call:
    """One request that reached the fake, refused or not. ``kind`` is a `Kind` value, ``configmap`` or ``event``."""

    verb: str
    kind: str
    namespace: str
    name: str


@dataclass(slots=True)
class _Fault:
    verb: str
    kind: str
    error: KubeError
    times: int


@dataclass(slots=True)
class _Event:
    version: int
    type: str
    kind: str
    namespace: str
    raw: dict[str, Any]


@dataclass(slots=True)
class FakeCluster:
    """The state. With ``graceful_pods`` a deleted pod stays with a deletionTimestamp until `finish_pod`."""

    clock: Clock = field(default_factory=SystemClock)
    graceful_pods: bool = False
    page_size: int = 500
    calls: list[Call] = field(default_factory=list)
    logs: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    """(namespace, pod, container) → log."""
    admit: Callable[[str, Json], None] | None = None
    """Called with (kind, manifest) before a create; raises `Invalid` or `Forbidden` to refuse."""
    chunk_bytes: int = 97
    """Watch streams are cut into pieces of this size, across lines."""
    watched_from: list[int] = field(default_factory=list)
    """The resourceVersion of each watch that was opened."""
    lists: int = 0
    _version: int = 100
    _floor: int = 0
    _objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    _history: list[_Event] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _faults: list[_Fault] = field(default_factory=list)
    _generation_of_watches: int = 0
    _tokens: dict[str, tuple[list[Json], str]] = field(default_factory=dict)
    _muted: bool = False

    # -- objects

    def create(self, kind: str, manifest: Json, *, dry_run: bool = False) -> dict[str, Any]:
        """POST."""
        metadata = manifest["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        self.called("create", kind, namespace, name)
        if self.admit is not None:
            self.admit(kind, manifest)
        if not name or len(name) > 253:
            raise Invalid(f"metadata.name: {name!r} is not a name", status=422, reason="Invalid")
        if (kind, namespace, name) in self._objects:
            raise AlreadyExists(f'{kind} "{name}" already exists', status=409, reason="AlreadyExists")
        raw: dict[str, Any] = copied(dict(manifest))
        raw["metadata"] |= {
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if kind in {Kind.TRIAL, Kind.SWEEP}:
            raw.pop("status", None)  # the status subresource ignores it
        if kind == Kind.POD:
            raw.setdefault("status", {"phase": "Pending"})
        if not dry_run:
            self._store("ADDED", kind, raw)
        return copied(raw)

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """GET."""
        self.called("get", kind, namespace, name)
        return copied(self._find(kind, namespace, name))

    def objects(self, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """All objects of a kind, by namespace and name; not counted as a call."""
        return [copied(raw) for (k, ns, _), raw in sorted(self._objects.items()) if k == kind and namespace in (None, ns)]

    def update(self, kind: str, namespace: str, name: str, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Somebody else (kubelet, user) changes the object in place; not counted as a call."""
        raw = copied(self._find(kind, namespace, name))
        spec = copied(raw.get("spec"))
        change(raw)
        if raw.get("spec") != spec:
            raw["metadata"]["generation"] += 1
        self._store("MODIFIED", kind, raw)
        return copied(raw)

    def set_status(self, kind: str, namespace: str, name: str, status: Json) -> dict[str, Any]:
        """Replace the whole status, as the kubelet or the Job controller would; not counted as a call."""
        return self.update(kind, namespace, name, lambda raw: raw.update(status=copied(dict(status))))

    def apply_status(
        self, kind: str, namespace: str, name: str, uid: str, status: Json, version: int | None = None
    ) -> dict[str, Any]:
        """Replace the status, if given that of ``version``; changes nothing (not even the version) if nothing changes."""
        self.called("apply_status", kind, namespace, name)
        live = self._find(kind, namespace, name)
        if live["metadata"]["uid"] != uid:
            raise Conflict(f'{kind} "{name}" is another object: not uid {uid}', status=409, reason="Conflict")
        if status != live.get("status", {}):
            if version is not None and live["metadata"]["resourceVersion"] != str(version):
                raise Stale(f'{kind} "{name}" has changed since it was read', status=409, reason="Conflict")
            self._store("MODIFIED", kind, {**copied(live), "status": copied(dict(status))})
        return copied(self._find(kind, namespace, name))

    def delete(self, kind: str, namespace: str, name: str, uid: str | None = None) -> None:
        """DELETE with everything it owns."""
        self.called("delete", kind, namespace, name)
        raw = self._find(kind, namespace, name)
        if uid is not None and raw["metadata"]["uid"] != uid:
            raise Conflict(f"Precondition failed: UID in precondition: {uid}", status=409, reason="Conflict")
        self._remove(kind, raw)

    def finish_pod(self, namespace: str, name: str) -> None:
        """The kubelet confirms a graceful deletion."""
        raw = self._find(Kind.POD, namespace, name)
        del self._objects[(Kind.POD, namespace, name)]
        self._record("DELETED", Kind.POD, raw)

    # -- faults

    def fail(self, verb: str, kind: str, error: KubeError, times: int = 1) -> None:
        """The next ``times`` calls of that verb on that kind raise ``error`` and do nothing."""
        self._faults.append(_Fault(verb, kind, error, times))

    def end_watches(self) -> None:
        """All open watches end cleanly."""
        self._generation_of_watches += 1
        self._wake()

    def mute_watches(self, muted: bool = True) -> None:
        """Open watches stay open and say nothing."""
        self._muted = muted
        self._wake()

    def compact(self) -> None:
        """Forget the history: watches from before now answer 410."""
        self._floor = self._version
        self._history.clear()

    def expire_continue_tokens(self) -> None:
        """Every continue token given out answers 410."""
        self._tokens.clear()

    def called(self, verb: str, kind: str, namespace: str, name: str) -> None:
        """Record a call; raise the fault that waits for it."""
        self.calls.append(Call(verb, str(kind), namespace, name))
        for fault in self._faults:
            if fault.verb == verb and fault.kind == kind and fault.times > 0:
                fault.times -= 1
                raise fault.error

    @property
    def watches_opened(self) -> int:
        """Watches opened since start."""
        return len(self.watched_from)

    def writes(self) -> list[Call]:
        """The calls that were writes."""
        return [call for call in self.calls if call.verb not in {"get", "list", "watch", "read_log"}]

    # -- WatchSource

    async def list_page(
        self, kind: Kind, namespace: str | None, continue_token: str = "", label_selector: str | None = None
    ) -> RawPage:
        """See `WatchSource`."""
        await asyncio.sleep(0)
        self.called("list", kind, namespace or "", "")
        self.lists += 1
        if continue_token:
            if continue_token not in self._tokens:
                raise Gone("The provided continue parameter is too old", status=410, reason="Expired")
            rest, version = self._tokens.pop(continue_token)
        else:
            rest = [raw for raw in self.objects(kind, namespace) if _selected(raw, RESOURCES[kind].selector)]
            rest = [raw for raw in rest if _selected(raw, label_selector)]
            version = str(self._version)
        items, rest = rest[: self.page_size], rest[self.page_size :]
        token = ""
        if rest:
            token = f"t{len(self.calls)}"
            self._tokens[token] = (rest, version)
        return RawPage(tuple(items), version, token)

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str | None, resource_version: str, timeout_seconds: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """See `WatchSource`."""
        await asyncio.sleep(0)
        self.called("watch", kind, namespace or "", "")
        self.watched_from.append(int(resource_version))
        yield self._stream(kind, namespace, int(resource_version))

    async def _stream(self, kind: Kind, namespace: str | None, version: int) -> AsyncIterator[bytes]:
        generation = self._generation_of_watches
        while generation == self._generation_of_watches:
            if self._muted:
                await self._changed.wait()
                continue
            if version < self._floor:
                gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                yield orjson.dumps({"type": "ERROR", "object": gone}) + b"\n"
                return
            news = [e for e in self._history if e.version > version and e.kind == kind]
            lines = [
                orjson.dumps({"type": e.type, "object": e.raw}) + b"\n"
                for e in news
                if namespace in (None, e.namespace) and _selected(e.raw, RESOURCES[kind].selector)
            ]
            version = self._version
            api_version, api_kind = _BOOKMARKED[kind]
            mark = {"apiVersion": api_version, "kind": api_kind, "metadata": {"resourceVersion": str(version)}}
            data = b"".join(lines) + orjson.dumps({"type": "BOOKMARK", "object": mark}) + b"\n"
            changed = self._changed
            for start in range(0, len(data), self.chunk_bytes):
                yield data[start : start + self.chunk_bytes]
            if version == self._version and generation == self._generation_of_watches:
                await changed.wait()

    # -- inside

    def _find(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        raw = self._objects.get((kind, namespace, name))
        if raw is None:
            raise NotFound(f'{kind} "{name}" not found', status=404, reason="NotFound")
        return raw

    def _store(self, event: str, kind: str, raw: dict[str, Any]) -> None:
        self._record(event, kind, raw)
        self._objects[(kind, raw["metadata"]["namespace"], raw["metadata"]["name"])] = raw

    def _record(self, event: str, kind: str, raw: dict[str, Any]) -> None:
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        namespace = raw["metadata"]["namespace"]
        self._history.append(_Event(self._version, event, str(kind), namespace, copied(raw)))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _remove(self, kind: str, raw: dict[str, Any]) -> None:
        metadata = raw["metadata"]
        if kind == Kind.POD and self.graceful_pods:
            if "deletionTimestamp" not in metadata:
                raw = copied(raw)
                raw["metadata"]["deletionTimestamp"] = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
                self._store("MODIFIED", kind, raw)
            return
        del self._objects[(kind, metadata["namespace"], metadata["name"])]
        self._record("DELETED", kind, copied(raw))
        for (child_kind, _, _), child in list(self._objects.items()):
            owners = child["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == metadata["uid"] for owner in owners):
                self._remove(child_kind, child)


def _selected(raw: Json, selector: str | None) -> bool:
    """Equality selectors only, which is all we use."""
    labels = raw["metadata"].get("labels") or {}
    pairs = [part.partition("=") for part in (selector or "").split(",") if part]
    return all(labels.get(key) == value.lstrip("=") for key, _, value in pairs)
