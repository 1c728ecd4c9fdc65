"""The constants of the decisions that are not the sweep's to choose, in one place. Seconds unless said otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field

from realcli_operator.reconcile.confirming import ConfirmAbove


@dataclass(frozen=True, slots=True)
class Policy:
    """Patience and bounds."""

    pull_grace: float = 120.0
    """A pull may fail for this long before the image counts as unavailable."""
    config_grace: float = 60.0
    """A container may be refused its configuration (a missing Secret) for this long."""
    session_exit_grace: float = 60.0
    """The rest of a pod may outlive its session for this long, then the pod is deleted."""
    readiness_grace: float = 30.0
    """A running session may be not ready for this long before it counts as waiting for storage."""
    busy_grace: float = 300.0
    """The same while the agent's container still runs: then a busy node that cannot be asked is likelier."""
    node_lost_grace: float = 600.0
    """A pod may be terminating for this long beyond its own grace; then its node is taken for lost."""
    max_backoff: float = 600.0
    verify_faults: int = 3
    """Verify pods without a verdict after which the control decides."""
    control_faults: int = 3
    """Control pods that say nothing after which the control has failed."""
    verify_pods: int = 150
    """Verify pods of an attempt in all (and control pods): with the longest back-off a day of storage that is away."""
    control_again: float = 60.0
    """A trial that awaits a control looks again after this time, should it not be woken."""
    keep_failed_pods: bool = False
    """Leave finished pods that did not end well, for their logs."""

    look_ahead: int = 2
    """Trials that exist and are not terminal: at most this many times parallelism."""
    creates_per_step: int = 200
    """Trials: as many as a busy API server makes in some seconds, during which the sweep is not looked at."""
    unproven: int = 5
    """Trials of a configuration (and of all configurations of an endpoint) that may have a pod as long as nothing shows that it
    works."""
    proving: float = 300.0
    """An attempt that works for this long shows that its configuration does."""
    recent_ends: int = 2000
    """The newest ends of a sweep are looked at for the breaker and for throttling."""
    breaker_window: int = 6
    """Of this many newest ends of a lane more than half must share a reason, and at least …"""
    breaker_ends: int = 3
    """… this many."""
    probe_interval: float = 300.0
    """Between two probes of an open lane."""
    throttled_share: str = "0.1"
    """An attempt that met 429 in more than this share of its requests was throttled."""
    throttle_window: int = 100
    """Ends of a model or configuration that its concurrency is derived from, at least; see `concurrency.window_of`."""
    restore_after: int = 4
    """Ends without throttling that give one place back."""
    judges: int = 4
    """Judge Jobs at the same time."""
    job_tries: int = 3
    """Runs of a Job whose result was lost."""
    job_pod_grace: float = 30.0
    """A finished Job may be known this long before its pod is."""
    job_start_grace: float = 120.0
    """A Job may have no pod for this long before a condition says so."""
    job_setup_grace: float = 60.0
    """A Job's pod may be scheduled and not started for this long before a condition says so."""
    plan_limit: float = 1800.0
    """A planning container may run for this long."""
    job_limit: float = 6 * 3600.0
    """A judging or reporting container may run for this long; then its run is lost."""
    confirm_above: ConfirmAbove = field(default_factory=ConfirmAbove)
    """A sweep whose forecast is above it waits for `spec.confirm`."""
    status_interval: float = 5.0
    """Between two writes of a sweep's counters."""


def backoff(base: float, failures: int, cap: float) -> float:
    """``base`` seconds after the first failure, doubled with each further one, at most ``cap``."""
    return float(min(cap, base * 2.0 ** max(0, min(failures - 1, 30))))
