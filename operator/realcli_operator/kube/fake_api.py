"""`KubeApi` on the cluster in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from realcli_operator.kube.api import Page, Regarding
from realcli_operator.kube.client import event_manifest
from realcli_operator.kube.errors import AlreadyExists, Gone, NotFound
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.names import Kind
from realcli_operator.kube.project import config_map_view, job_view, pod_view, project, sweep_view, trial_view
from realcli_operator.kube.views import ConfigMapView, JobView, Json, ObjectView, PodView, SweepView, TrialView


class FakeKubeApi:
    """The port without a network; behaviour is `FakeCluster`'s."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    async def create_pod(self, manifest: Json) -> PodView:
        """See `KubeApi`."""
        return pod_view(self.cluster.create(Kind.POD, manifest))

    async def dry_run_create_pod(self, manifest: Json) -> Json:
        """See `KubeApi`."""
        return self.cluster.create(Kind.POD, manifest, dry_run=True)

    async def get_pod(self, namespace: str, name: str) -> PodView:
        """See `KubeApi`."""
        return pod_view(self.cluster.get(Kind.POD, namespace, name))

    async def delete_pod(self, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None) -> bool:
        """See `KubeApi`."""
        return self._delete(Kind.POD, namespace, name, uid)

    async def read_log(
        self, namespace: str, pod: str, container: str, *, limit_bytes: int | None = None, tail_lines: int | None = None
    ) -> bytes:
        """See `KubeApi`."""
        self.cluster.called("read_log", Kind.POD, namespace, pod)
        log = self.cluster.logs.get((namespace, pod, container))
        if log is None:
            raise NotFound(f'no log of container "{container}" of pod "{pod}"', status=404, reason="NotFound")
        if tail_lines is not None:
            log = b"".join(log.splitlines(keepends=True)[-tail_lines:]) if tail_lines else b""
        return log if limit_bytes is None else log[:limit_bytes]

    async def create_job(self, manifest: Json) -> JobView:
        """See `KubeApi`."""
        return job_view(self.cluster.create(Kind.JOB, manifest))

    async def get_job(self, namespace: str, name: str) -> JobView:
        """See `KubeApi`."""
        return job_view(self.cluster.get(Kind.JOB, namespace, name))

    async def delete_job(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """See `KubeApi`."""
        return self._delete(Kind.JOB, namespace, name, uid)

    async def create_config_map(self, manifest: Json) -> ConfigMapView:
        """See `KubeApi`."""
        return config_map_view(self.cluster.create("configmap", manifest))

    async def get_config_map(self, namespace: str, name: str) -> ConfigMapView:
        """See `KubeApi`."""
        return config_map_view(self.cluster.get("configmap", namespace, name))

    async def create_trial(self, manifest: Json) -> TrialView:
        """See `KubeApi`."""
        return trial_view(self.cluster.create(Kind.TRIAL, manifest))

    async def get_trial(self, namespace: str, name: str) -> TrialView:
        """See `KubeApi`."""
        return trial_view(self.cluster.get(Kind.TRIAL, namespace, name))

    async def delete_trial(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """See `KubeApi`."""
        return self._delete(Kind.TRIAL, namespace, name, uid)

    async def delete_sweep(self, namespace: str, name: str, *, uid: str | None = None) -> bool:
        """See `KubeApi`."""
        return self._delete(Kind.SWEEP, namespace, name, uid)

    async def get_sweep(self, namespace: str, name: str) -> SweepView:
        """See `KubeApi`."""
        return sweep_view(self.cluster.get(Kind.SWEEP, namespace, name))

    async def apply_trial_status(self, trial: ObjectView, status: Json) -> TrialView:
        """See `KubeApi`."""
        version = trial.resource_version
        return trial_view(self.cluster.apply_status(Kind.TRIAL, trial.namespace, trial.name, trial.uid, status, version))

    async def apply_sweep_status(self, sweep: ObjectView, status: Json) -> SweepView:
        """See `KubeApi`."""
        return sweep_view(self.cluster.apply_status(Kind.SWEEP, sweep.namespace, sweep.name, sweep.uid, status))

    async def list_pages(
        self, kind: Kind, namespace: str | None = None, label_selector: str | None = None
    ) -> AsyncIterator[Page]:
        """See `KubeApi`."""
        token = ""
        while True:
            try:
                page = await self.cluster.list_page(kind, namespace, token, label_selector)
            except Gone:
                token = ""
                continue
            yield Page(tuple(project(kind, raw) for raw in page.items), int(page.resource_version))
            token = page.continue_token
            if not token:
                return

    async def emit_event(self, regarding: Regarding, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """See `KubeApi`."""
        try:
            self.cluster.create("event", event_manifest(regarding, type_, reason, message, self.cluster.clock))
        except AlreadyExists:
            return

    def _delete(self, kind: Kind, namespace: str, name: str, uid: str | None) -> bool:
        try:
            self.cluster.delete(kind, namespace, name, uid)
        except NotFound:
            return False
        return True
