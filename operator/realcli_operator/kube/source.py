"""The informer's port: LIST pages and watch streams, raw. Real on a `Transport`, in memory in `realcli_operator.kube.fake`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

import orjson

from realcli_operator.kube.names import RESOURCES, Kind
from realcli_operator.kube.transport import Transport
from realcli_operator.kube.views import Json

PAGE_SIZES: Final = {Kind.POD: 100, Kind.JOB: 100}
"""Objects of a page. A pod of ours is 15 kB of JSON and ten times that while it is parsed."""
PAGE_SIZE: Final = 500


@dataclass(frozen=True, slots=True)
class RawPage:
    """One page of a LIST; ``continue_token`` is "" on the last one."""

    items: tuple[Json, ...]
    resource_version: str
    continue_token: str


class WatchSource(Protocol):
    """Where objects come from. Errors are those of `realcli_operator.kube.errors`."""

    async def list_page(
        self, kind: Kind, namespace: str | None, continue_token: str = "", label_selector: str | None = None
    ) -> RawPage:
        """The next page; `Gone` when the continue token expired."""
        ...

    def watch(
        self, kind: Kind, namespace: str | None, resource_version: str, timeout_seconds: int
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Bytes of newline-delimited JSON events after ``resource_version``, with bookmarks, in any chunking."""
        ...


class HttpSource:
    """LIST and watch over HTTP."""

    def __init__(self, transport: Transport, page_size: int | None = None) -> None:
        self._transport = transport
        self._page_size = page_size

    async def list_page(
        self, kind: Kind, namespace: str | None, continue_token: str = "", label_selector: str | None = None
    ) -> RawPage:
        """See `WatchSource`."""
        resource = RESOURCES[kind]
        limit = self._page_size or PAGE_SIZES.get(kind, PAGE_SIZE)
        query = _selector(kind, label_selector) | {"limit": str(limit)}
        if continue_token:
            query["continue"] = continue_token
        raw = await self._transport.request("GET", resource.path(namespace), resource=resource.plural, query=query)
        document = orjson.loads(raw)
        metadata = document["metadata"]
        return RawPage(
            items=tuple(document.get("items") or ()),
            resource_version=metadata["resourceVersion"],
            continue_token=metadata.get("continue") or "",
        )

    def watch(
        self, kind: Kind, namespace: str | None, resource_version: str, timeout_seconds: int
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `WatchSource`."""
        query = _selector(kind, None) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        return self._transport.stream(RESOURCES[kind].path(namespace), query)


def _selector(kind: Kind, extra: str | None) -> dict[str, str]:
    parts = [part for part in (RESOURCES[kind].selector, extra) if part]
    return {"labelSelector": ",".join(parts)} if parts else {}
