"""`KubeApi` on a real API server."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Literal

import orjson

from realcli_operator.kube.api import Page, Regarding
from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound, Stale
from realcli_operator.kube.names import FIELD_MANAGER, RESOURCES, Kind, Resource
from realcli_operator.kube.project import config_map_view, job_view, pod_view, project, sweep_view, trial_view
from realcli_operator.kube.source import HttpSource, WatchSource
from realcli_operator.kube.transport import JSON_PATCH, METADATA, Transport
from realcli_operator.kube.views import ConfigMapView, JobView, Json, ObjectView, PodView, SweepView, TrialView


class KubeClient:
    """The port over HTTP; retries, rate limit and typed errors are the transport's."""

    def __init__(self, transport: Transport, source: WatchSource | None = None, clock: Clock | None = None) -> None:
        self._transport = transport
        self._source: WatchSource = source or HttpSource(transport)
        self._clock: Clock = clock or SystemClock()

    async def create_pod(self, manifest: Json) -> PodView:
        """See `KubeApi`."""
        return pod_view(await self._create(RESOURCES[Kind.POD], manifest))

    async def dry_run_create_pod(self, manifest: Json) -> Json:
        """See `KubeApi`."""
        return await self._create(RESOURCES[Kind.POD], manifest, {"dryRun": "All"})

    async def get_pod(self, namespace: str, name: str) -> PodView:
        """See `KubeApi`."""
        return pod_view(await self._get(Kind.POD, namespace, name))

    async def delete_pod(self, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None) -> bool:
        """See `KubeApi`."""
        return await self._delete(Kind.POD, namespace, name, uid, grace_seconds)

    async def read_log(
        self, namespace: str, pod: str, container: str, *, limit_bytes: int | None = None, tail_lines: int | None = None
    ) -> bytes:
        """See `KubeApi`."""
        query = {"container": container}
        if limit_bytes is not None:
            query["limitBytes"] = str(limit_bytes)
        if tail_lines is not None:
            query["tailLines"] = str(tail_lines)
        path = RESOURCES[Kind.POD].path(namespace, pod, "log")
        return await self._transport.request("GET", path, resource="pods/log", query=query)

    async def create_job(self, manifest: Json) -> JobView:
        """See `KubeApi`."""
        return job_view(await self._create(RESOURCES[Kind.JOB], manifest))

    async def get_job(self, namespace: str, name: str) -> JobView:
        """See `KubeApi`."""
        return job_view(await self._get(Kind.JOB, namespace, name))

    async def delete_job(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """See `KubeApi`."""
        return await self._delete(Kind.JOB, namespace, name, uid)

    async def create_config_map(self, manifest: Json) -> ConfigMapView:
        """See `KubeApi`."""
        path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/configmaps"
        return config_map_view(await self._json("POST", path, "configmaps", manifest))

    async def get_config_map(self, namespace: str, name: str) -> ConfigMapView:
        """See `KubeApi`."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        return config_map_view(await self._json("GET", path, "configmaps"))

    async def create_trial(self, manifest: Json) -> TrialView:
        """See `KubeApi`."""
        return trial_view(await self._create(RESOURCES[Kind.TRIAL], manifest, {"fieldManager": FIELD_MANAGER}))

    async def get_trial(self, namespace: str, name: str) -> TrialView:
        """See `KubeApi`."""
        return trial_view(await self._get(Kind.TRIAL, namespace, name))

    async def delete_trial(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """See `KubeApi`."""
        return await self._delete(Kind.TRIAL, namespace, name, uid)

    async def delete_sweep(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """See `KubeApi`."""
        return await self._delete(Kind.SWEEP, namespace, name, uid)

    async def get_sweep(self, namespace: str, name: str) -> SweepView:
        """See `KubeApi`."""
        return sweep_view(await self._get(Kind.SWEEP, namespace, name))

    async def apply_trial_status(self, trial: ObjectView, status: Json) -> TrialView:
        """See `KubeApi`."""
        unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": str(trial.resource_version)}
        return trial_view(await self._apply_status(RESOURCES[Kind.TRIAL], trial, status, unchanged))

    async def apply_sweep_status(self, sweep: ObjectView, status: Json) -> SweepView:
        """See `KubeApi`."""
        return sweep_view(await self._apply_status(RESOURCES[Kind.SWEEP], sweep, status))

    async def list_pages(
        self, kind: Kind, namespace: str | None = None, label_selector: str | None = None
    ) -> AsyncIterator[Page]:
        """See `KubeApi`."""
        token = ""
        while True:
            try:
                page = await self._source.list_page(kind, namespace, token, label_selector)
            except Gone:
                if not token:
                    raise
                token = ""
                continue
            yield Page(tuple(project(kind, raw) for raw in page.items), int(page.resource_version))
            token = page.continue_token
            if not token:
                return

    async def emit_event(self, regarding: Regarding, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """See `KubeApi`."""
        manifest = event_manifest(regarding, type_, reason, message, self._clock)
        try:
            await self._json("POST", f"/api/v1/namespaces/{regarding.namespace}/events", "events", manifest)
        except AlreadyExists:
            return

    async def _create(self, resource: Resource, manifest: Json, query: dict[str, str] | None = None) -> Json:
        path = resource.path(manifest["metadata"]["namespace"])
        return await self._json("POST", path, resource.plural, manifest, query)

    async def _get(self, kind: Kind, namespace: str, name: str) -> Json:
        resource = RESOURCES[kind]
        return await self._json("GET", resource.path(namespace, name), resource.plural)

    async def _delete(self, kind: Kind, namespace: str, name: str, uid: str | None, grace_seconds: int | None = None) -> bool:
        resource = RESOURCES[kind]
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            # The answer is the object as it was, or a Status: nothing is read from it, so the server need not write it all.
            path = resource.path(namespace, name)
            await self._transport.request("DELETE", path, resource=resource.plural, body=body, accept=METADATA)
        except NotFound:
            return False
        return True

    async def _apply_status(self, resource: Resource, target: ObjectView, status: Json, *tests: Json) -> Json:
        """Replace the status if the object is the one we decided about.

        Server-side apply cannot say that: a uid in an applied configuration is ignored on ``/status`` of a custom
        resource.
        """
        body = [
            {"op": "test", "path": "/metadata/uid", "value": target.uid},
            *tests,
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            raw = await self._transport.request(
                "PATCH",
                resource.path(target.namespace, target.name, "status"),
                resource=f"{resource.plural}/status",
                query={"fieldManager": FIELD_MANAGER},
                body=body,
                content_type=JSON_PATCH,
            )
        except Conflict as error:
            # The server's own tries met other writers each time; whose object it is was not the question.
            raise Stale(error.message, status=error.status, reason=error.reason) from error
        except Invalid:
            # A failed test and a status that breaks the schema are both 422.
            live = await self._get(resource.kind, target.namespace, target.name)
            where = f"{resource.api_kind} {target.namespace}/{target.name}"
            if live["metadata"]["uid"] != target.uid:
                raise Conflict(f"{where} is another object: not uid {target.uid}", status=409, reason="Conflict") from None
            if not tests or live["metadata"]["resourceVersion"] == str(target.resource_version):
                raise
            if live.get("status") == status:  # our own first try, whose answer was lost
                return live
            raise Stale(f"{where} has changed since it was read", status=409, reason="Conflict") from None
        return _object(raw)

    async def _json(self, method: str, path: str, resource: str, body: Any = None, query: dict[str, str] | None = None) -> Json:
        return _object(await self._transport.request(method, path, resource=resource, query=query, body=body))


def event_manifest(regarding: Regarding, type_: str, reason: str, message: str, clock: Clock) -> Json:
    """A core/v1 Event whose name follows from its content, so that saying it twice makes one object."""
    text = "\0".join((regarding.uid, type_, reason, message))
    name = f"{regarding.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": regarding.namespace},
        "involvedObject": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "namespace": regarding.namespace,
            "name": regarding.name,
            "uid": regarding.uid,
        },
        "type": type_,
        "reason": reason,
        "message": message[:1024],
        "source": {"component": FIELD_MANAGER},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _object(raw: bytes) -> Json:
    document: Json = orjson.loads(raw)
    return document
