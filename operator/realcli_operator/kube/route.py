"""Which keys a changed object concerns. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from realcli_operator.kube.names import LABEL_ROLE, Key, Role, sweep_key, trial_key
from realcli_operator.kube.views import SweepView, TrialView, View

SWEEP_DEBOUNCE: Final = 1.0
"""Seconds: a sweep looks at its trials and judge Jobs once for all of them that changed meanwhile."""


class Hint(NamedTuple):
    """Look at ``key`` in ``after`` seconds."""

    key: Key
    after: float = 0.0


def route(view: View) -> tuple[Hint, ...]:
    """A pod concerns its trial, or its sweep if it belongs to a Job; a Job its sweep; a trial itself and its sweep."""
    if isinstance(view, SweepView):
        return (Hint(sweep_key(view.namespace, view.name)),)
    hints: list[Hint] = []
    if isinstance(view, TrialView):
        hints.append(Hint(trial_key(view.namespace, view.name)))
        if view.sweep:
            hints.append(Hint(sweep_key(view.namespace, view.sweep), SWEEP_DEBOUNCE))
    elif view.trial:
        hints.append(Hint(trial_key(view.namespace, view.trial)))
    elif view.sweep:
        many = view.labels.get(LABEL_ROLE) == Role.JUDGE  # of these a sweep has thousands
        hints.append(Hint(sweep_key(view.namespace, view.sweep), SWEEP_DEBOUNCE if many else 0.0))
    return tuple(hints)
