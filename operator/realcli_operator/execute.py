"""Doing what was decided: creations that are safe to repeat, one status write, deletions."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import structlog

from realcli.api.sweepstatus import SweepStatus
from realcli.api.trial import TrialStatus
from realcli_operator.faults import FaultPoint, Faults
from realcli_operator.kube.api import KubeApi, Regarding
from realcli_operator.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, KubeError, NotFound, Stale, TransientError
from realcli_operator.kube.lister import Happened, Sink
from realcli_operator.kube.names import ANNOTATION_SPEC_DIGEST, API_VERSION, LABEL_MANAGED_BY, LABEL_SWEEP
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import ConfigMapView, JobView, Json, ObjectView, PodView, SweepView, TrialView, View
from realcli_operator.reconcile.plans import Note, Removal

log = structlog.get_logger(__name__)

V = TypeVar("V", bound=ObjectView)
TERMINATING: Final = "because it is being terminated"
NOT_PERMITTED: Final = " cannot create resource "
"""In the words of the authorizer; admission and quota say other things."""
QUOTA_IS_FULL: Final = "exceeded quota: "
"""In the words of the quota's admission; of a pod that names no request it says "failed quota"."""
_FOUND_BY: Final = (LABEL_MANAGED_BY, LABEL_SWEEP)
"""Without these labels a Job is not watched, or not known as its sweep's: it would be made, and waited for, for ever. A Trial's
spec names its sweep, and a pod that is expected is read by its name."""


class Refused(Exception):
    """The API server will not have the object, or one of that name is somebody else's; the message is for a person.

    ``passes``: it is no fault of the object, which waits: the operator itself lacks the permission, or a quota is full for now.
    """

    def __init__(self, message: str, *, passes: bool = False) -> None:
        super().__init__(message)
        self.passes = passes


class StillDeleting(TransientError):
    """The old object of that name is on its way out."""


class Executor:
    """Writes to the API server and takes the answer over at once, so that the next decision sees its own writes.

    ``sink`` is told, as it would be by the watch: the event that comes later is no news any more.
    """

    def __init__(self, api: KubeApi, store: Store, sink: Sink, faults: Faults | None = None) -> None:
        self.api = api
        self.store = store
        self._sink = sink
        self._faults = faults or Faults()

    def _took(self, view: View) -> None:
        if self.store.put(view):
            self._sink(view, Happened.CHANGED)

    def _dropped(self, view: View) -> None:
        if self.store.delete(view, for_good=True):
            self._sink(view, Happened.GONE)

    # -- creations

    async def create_pod(self, manifest: Json) -> PodView:
        """A pod of a trial; `Refused`."""
        view = await _ensure("Pod", self.api.create_pod, self.api.get_pod, manifest)
        self._took(view)
        self._faults.reached(FaultPoint.POD)
        return view

    async def create_job(self, manifest: Json, fault: FaultPoint | None = None) -> JobView:
        """A Job of a sweep; `Refused`."""
        view = await _ensure("Job", self.api.create_job, self.api.get_job, manifest)
        self._took(view)
        if fault is not None:
            self._faults.reached(fault)
        return view

    async def create_config_map(self, manifest: Json) -> ConfigMapView:
        """The ConfigMap of the plan; `Refused`."""
        return await _ensure("ConfigMap", self.api.create_config_map, self.api.get_config_map, manifest)

    async def create_trial(self, manifest: Json) -> TrialView:
        """A Trial; `Refused`."""
        view = await _ensure("Trial", self.api.create_trial, self.api.get_trial, manifest)
        self._took(view)
        self._faults.reached(FaultPoint.TRIAL)
        return view

    # -- status

    async def write_trial_status(self, trial: TrialView, status: TrialStatus) -> bool:
        """The whole status; False if the trial is gone. `Stale` if another operator was faster: what it wrote is taken
        over, and decided about next."""
        try:
            self._took(await self.api.apply_trial_status(trial, status.dump()))
        except (NotFound, Conflict):
            return False
        except Stale:
            self._took(await self.api.get_trial(trial.namespace, trial.name))
            raise
        self._faults.reached(FaultPoint.STATUS)
        return True

    async def write_sweep_status(self, sweep: SweepView, status: SweepStatus) -> bool:
        """The whole status; False if the sweep is gone."""
        try:
            answer = await self.api.apply_sweep_status(sweep, status.dump())
        except (NotFound, Conflict):
            return False
        if self.store.put(answer) and answer.generation != sweep.generation:
            # Nothing follows from the status, but from an edit since the decision: its own event is no news any more.
            self._sink(answer, Happened.CHANGED)
        return True

    # -- deletions

    async def delete_pod(self, namespace: str, removal: Removal) -> None:
        """A pod by uid; one that is gone or another by now is left alone."""
        try:
            await self.api.delete_pod(namespace, removal.name, uid=removal.uid, grace_seconds=removal.grace_seconds)
        except (NotFound, Conflict):
            return
        pod = self.store.pod(namespace, removal.name)
        # A terminal pod is removed at once; a running one is still seen while it terminates.
        if pod is not None and pod.uid == removal.uid and (pod.finished or removal.grace_seconds == 0):
            self._dropped(pod)

    async def delete_job(self, namespace: str, removal: Removal) -> None:
        """A Job by uid, with its pods."""
        try:
            await self.api.delete_job(namespace, removal.name, uid=removal.uid)
        except (NotFound, Conflict):
            return
        job = self.store.job(namespace, removal.name)
        if job is not None and job.uid == removal.uid:
            self._dropped(job)

    async def delete_sweep(self, sweep: SweepView) -> None:
        """A sweep by uid, and by its owner references all that it owns; what lies in storage stays."""
        log.info("ttlAfterFinished is over", namespace=sweep.namespace, name=sweep.name)
        with contextlib.suppress(NotFound, Conflict):
            await self.api.delete_sweep(sweep.namespace, sweep.name, uid=sweep.uid)
        self._dropped(sweep)

    # -- events

    async def tell(self, kind: str, view: ObjectView, notes: tuple[Note, ...]) -> None:
        """Events are for people: one that cannot be posted must not repeat the step."""
        for note in notes:
            log.info(note.message, kind=kind, namespace=view.namespace, name=view.name, reason=note.reason)
            regarding = Regarding(API_VERSION, kind, view.namespace, view.name, view.uid)
            try:
                await self.api.emit_event(regarding, note.type, note.reason, note.message)
            except KubeError as error:
                log.warning("event not posted", reason=note.reason, error=str(error))


async def _ensure(
    kind: str, create: Callable[[Json], Awaitable[V]], read: Callable[[str, str], Awaitable[V]], manifest: Json
) -> V:
    """Create, or find that it was created: same owner and same spec. Everything else of that name is `Refused`."""
    metadata: dict[str, Any] = manifest["metadata"]
    where = f"{kind} {metadata['namespace']}/{metadata['name']}"
    try:
        return await create(manifest)
    except AlreadyExists:
        found = await read(metadata["namespace"], metadata["name"])
    except (Forbidden, Invalid) as error:
        if TERMINATING in error.message:
            raise StillDeleting(error.message, status=error.status, reason=error.reason) from error
        passes = error.status == 401 or NOT_PERMITTED in error.message or QUOTA_IS_FULL in error.message
        raise Refused(f"the API server refuses {where}: {error.message}", passes=passes) from error
    wanted = metadata["ownerReferences"][0]
    if found.owner_uid != wanted["uid"]:
        if found.deleting:
            raise StillDeleting(f"{where} of uid {found.uid} is being deleted")
        if found.owner_name == wanted["name"]:
            raise StillDeleting(f"{where} is that of an earlier {wanted['kind']} {wanted['name']} and waits for its deletion")
        belongs = f"belongs to {found.owner_name}" if found.owner_name else "has no owner"
        raise Refused(
            f"{where} exists and is not ours: it {belongs}, not to {wanted['kind']} {wanted['name']}; delete or rename it"
        )
    if found.deleting:
        raise StillDeleting(f"{where} is being deleted")
    if found.spec_digest != metadata["annotations"][ANNOTATION_SPEC_DIGEST]:
        raise Refused(f"{where} exists with another spec ({found.spec_digest}) than it should have; delete it")
    labels: dict[str, str] = metadata.get("labels", {})
    lost = next((label for label in _FOUND_BY if labels.get(label) != found.labels.get(label)), None)
    if lost is not None and kind == "Job":
        raise Refused(
            f"{where} has lost its label {lost}, by which it is found: set it to {labels.get(lost)} again, or delete it"
        )
    return found
