"""The port to the Kubernetes API: the writes and the fresh reads that a reconciler may do.

One real implementation (`realcli_operator.kube.client`) and one in memory (`realcli_operator.kube.fake`). Manifests are
plain JSON objects with ``metadata.namespace`` and ``metadata.name``. Every method raises the typed errors of
`realcli_operator.kube.errors`; transient ones only after the client's own retries are used up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from realcli_operator.kube.names import Kind
from realcli_operator.kube.views import ConfigMapView, JobView, Json, ObjectView, PodView, SweepView, TrialView, View


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a LIST. ``resource_version`` is that of the whole list, equal on all pages."""

    views: tuple[View, ...]
    resource_version: int


class KubeApi(Protocol):
    """What a reconciler may ask of the API server."""

    async def create_pod(self, manifest: Json) -> PodView:
        """POST; `AlreadyExists` on a pod of that name, `Invalid`/`Forbidden` when refused."""
        ...

    async def dry_run_create_pod(self, manifest: Json) -> Json:
        """POST with ``dryRun=All``: raises what `create_pod` would raise, creates nothing. The pod as the server would
        have kept it: a field whose feature is off is not in it."""
        ...

    async def get_pod(self, namespace: str, name: str) -> PodView:
        """Fresh read; `NotFound` is proof of absence (the store is not)."""
        ...

    async def delete_pod(self, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None) -> bool:
        """False if it was already gone; `Conflict` if the pod of that name has another uid."""
        ...

    async def read_log(
        self, namespace: str, pod: str, container: str, *, limit_bytes: int | None = None, tail_lines: int | None = None
    ) -> bytes:
        """Log of one container as it is now."""
        ...

    async def create_job(self, manifest: Json) -> JobView:
        """POST; `AlreadyExists` on a Job of that name."""
        ...

    async def get_job(self, namespace: str, name: str) -> JobView:
        """Fresh read."""
        ...

    async def delete_job(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """Background deletion (its pods go too); False if it was already gone."""
        ...

    async def create_config_map(self, manifest: Json) -> ConfigMapView:
        """POST; `AlreadyExists` on a ConfigMap of that name."""
        ...

    async def get_config_map(self, namespace: str, name: str) -> ConfigMapView:
        """Fresh read."""
        ...

    async def create_trial(self, manifest: Json) -> TrialView:
        """POST; `AlreadyExists` on a Trial of that name."""
        ...

    async def get_trial(self, namespace: str, name: str) -> TrialView:
        """Fresh read."""
        ...

    async def delete_trial(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """Background deletion (its pods go too); False if it was already gone."""
        ...

    async def delete_sweep(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """Background deletion (all that it owns goes too); False if it was already gone."""
        ...

    async def get_sweep(self, namespace: str, name: str) -> SweepView:
        """Fresh read."""
        ...

    async def apply_trial_status(self, trial: ObjectView, status: Json) -> TrialView:
        """Write the whole status (nothing is merged) of the Trial as it was read: `NotFound`/`Conflict` if the object of
        that uid is gone, `Stale` if it has changed meanwhile. A status that is there already is success."""
        ...

    async def apply_sweep_status(self, sweep: ObjectView, status: Json) -> SweepView:
        """Write the whole status (nothing is merged); `NotFound`/`Conflict` if the object of that uid is gone."""
        ...

    def list_pages(self, kind: Kind, namespace: str | None = None, label_selector: str | None = None) -> AsyncIterator[Page]:
        """Fresh LIST in pages of 500; restarts from the first page when the continue token expires (410), so a
        caller collects by uid. ``label_selector`` is added to the kind's own."""
        ...

    async def emit_event(self, regarding: Regarding, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """One Event; the same (object, reason, message) again is the same Event and does nothing."""
        ...
