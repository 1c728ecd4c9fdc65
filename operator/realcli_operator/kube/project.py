"""From API objects to views. Pure; an object without uid, name or resourceVersion is a `ProjectionError`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from realcli_operator.kube.names import (
    ANNOTATION_SPEC_DIGEST,
    GROUP,
    LABEL_CONFIGURATION,
    LABEL_MANAGED_BY,
    LABEL_MODE,
    LABEL_REPEAT,
    LABEL_TASK,
    Kind,
)
from realcli_operator.kube.views import (
    Condition,
    ConfigMapView,
    ContainerState,
    ContainerView,
    JobView,
    Json,
    PodView,
    SweepView,
    TrialView,
    View,
)

_LABEL_PREFIX: Final = f"{GROUP}/"
_IN_SPEC: Final = frozenset({LABEL_CONFIGURATION, LABEL_TASK, LABEL_MODE, LABEL_REPEAT})
"""For people who select by them; a Trial's spec says the same, and verbatim."""
_EMPTY: Final[Json] = MappingProxyType({})


class ProjectionError(ValueError):
    """The object is not what the API promises; names the object and the field."""


def parse_time(text: str | None) -> datetime | None:
    """RFC 3339 → aware datetime in UTC; None and "" → None."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def project(kind: Kind, raw: Json) -> View:
    """The view of an object of that kind as the API returned it."""
    try:
        return _PROJECTIONS[kind](raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        metadata = raw.get("metadata") or {}
        where = f"{kind} {metadata.get('namespace')}/{metadata.get('name')}"
        raise ProjectionError(f"{where}: unexpected shape: {type(error).__name__}: {error}") from error


def pod_view(raw: Json) -> PodView:
    """Pod → view."""
    spec: Json = raw.get("spec") or _EMPTY
    status: Json = raw.get("status") or _EMPTY
    return PodView(
        **_common(raw),
        phase=intern(status.get("phase", "")),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        node=spec.get("nodeName"),
        start_time=parse_time(status.get("startTime")),
        conditions=_conditions(status),
        containers=_containers(status.get("containerStatuses")),
        init_containers=_containers(status.get("initContainerStatuses")),
        scheduling_gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
    )


def job_view(raw: Json) -> JobView:
    """Job → view."""
    status: Json = raw.get("status") or _EMPTY
    return JobView(
        **_common(raw),
        active=status.get("active", 0),
        succeeded=status.get("succeeded", 0),
        failed=status.get("failed", 0),
        start_time=parse_time(status.get("startTime")),
        completion_time=parse_time(status.get("completionTime")),
        conditions=_conditions(status),
    )


def trial_view(raw: Json) -> TrialView:
    """Trial → view, spec and status verbatim. There may be 20,000 of them, so what many of them say is kept once."""
    spec, status = raw.get("spec") or _EMPTY, raw.get("status") or _EMPTY
    if spec:
        spec = {key: intern(value) if type(value) is str else value for key, value in spec.items()}
    if status:
        status = {key: _shared(key, value) for key, value in status.items()}
    return TrialView(**_common(raw), spec=spec, status=status)


_OFTEN_SAID: Final = frozenset(
    {"phase", "reason", "workEnd", "node", "startedAt", "endedAt", "reward", "throttled", "verifierTrust", "egress", "limit"}
)


def _shared(key: str, value: Any) -> Any:
    """A field of a trial's status, not a copy of what another trial says."""
    if key in _OFTEN_SAID:
        return intern(value) if type(value) is str else value
    if key == "conditions" and type(value) is list:
        return [_condition(entry) for entry in value]
    return value


def _condition(entry: Any) -> Any:
    plain = type(entry) is dict and all(type(value) in (str, int) for value in entry.values())
    return _once(tuple(entry.items())) if plain and not entry.get("message") else entry


@lru_cache(maxsize=4096)
def _once(items: tuple[tuple[str, Any], ...]) -> Json:
    """One condition for all trials that were in it since the same second."""
    return dict(items)


def sweep_view(raw: Json) -> SweepView:
    """BenchmarkSweep → view, spec and status verbatim."""
    return SweepView(**_common(raw), spec=raw.get("spec") or _EMPTY, status=raw.get("status") or _EMPTY)


def config_map_view(raw: Json) -> ConfigMapView:
    """ConfigMap → view with its data."""
    return ConfigMapView(
        **_common(raw),
        data=raw.get("data") or _EMPTY,
        binary_data=raw.get("binaryData") or _EMPTY,
        immutable=raw.get("immutable", False),
    )


_PROJECTIONS: Final[Mapping[Kind, Callable[[Json], View]]] = {
    Kind.POD: pod_view,
    Kind.JOB: job_view,
    Kind.TRIAL: trial_view,
    Kind.SWEEP: sweep_view,
}


def _common(raw: Json) -> dict[str, Any]:
    metadata: Json = raw["metadata"]
    owner = next((ref for ref in metadata.get("ownerReferences") or () if ref.get("controller")), None)
    labels = {
        intern(key): intern(value)
        for key, value in (metadata.get("labels") or _EMPTY).items()
        if (key.startswith(_LABEL_PREFIX) and key not in _IN_SPEC) or key == LABEL_MANAGED_BY
    }
    return {
        "namespace": intern(metadata.get("namespace", "")),
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resource_version": int(metadata["resourceVersion"]),
        "generation": metadata.get("generation", 0),
        "labels": _labels(tuple(sorted(labels.items()))),
        "owner_uid": intern(owner["uid"]) if owner else None,
        "owner_name": intern(owner["name"]) if owner else None,
        "spec_digest": (metadata.get("annotations") or _EMPTY).get(ANNOTATION_SPEC_DIGEST),
        "creation_timestamp": parse_time(metadata.get("creationTimestamp")),
        "deletion_timestamp": parse_time(metadata.get("deletionTimestamp")),
    }


@lru_cache(maxsize=8192)
def _labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Kept once: those of all trials of a sweep are the same."""
    return MappingProxyType(dict(items))


def _conditions(status: Json) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=intern(entry["type"]),
            status=intern(entry["status"]),
            reason=entry.get("reason") or "",
            message=entry.get("message") or "",
            last_transition_time=parse_time(entry.get("lastTransitionTime")),
        )
        for entry in status.get("conditions") or ()
    )


def _containers(statuses: Iterable[Json] | None) -> tuple[ContainerView, ...]:
    return tuple(_container(entry) for entry in statuses or ())


def _container(entry: Json) -> ContainerView:
    states: Json = entry.get("state") or _EMPTY
    # An empty state means waiting: the API's documented default.
    state = next((s for s in ContainerState if states.get(s) is not None), ContainerState.WAITING)
    details: Json = states.get(state) or _EMPTY
    return ContainerView(
        name=intern(entry["name"]),
        state=state,
        reason=details.get("reason") or "",
        message=details.get("message") or "",
        exit_code=details.get("exitCode"),
        signal=details.get("signal"),
        started_at=parse_time(details.get("startedAt")),
        finished_at=parse_time(details.get("finishedAt")),
        ready=entry.get("ready", False),
        restart_count=entry.get("restartCount", 0),
        image_id=intern(entry.get("imageID", "")),
    )
