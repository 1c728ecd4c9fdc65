"""What the operator knows of the cluster: one dict of slim views per kind, indexed by owner.

The store answers "what have we seen"; it never proves absence (a fresh read does). It is fed by several sources at once
(watch, periodic LIST, kopf), so `put` refuses what is older than what it has, and objects that were seen deleted.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, cast

from realcli_operator.kube.changes import Changes, Following
from realcli_operator.kube.names import Kind
from realcli_operator.kube.tombstones import FOR_GOOD, Tombstones
from realcli_operator.kube.views import KIND_OF_VIEW, JobView, PodView, SweepView, TrialView, View

Ident = tuple[str, str]
"""Namespace and name."""


class Store:
    """Views by kind and (namespace, name). Single event loop, no locks."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[Ident, View]] = {kind: {} for kind in Kind}
        self._pods_of_trial: defaultdict[Ident, dict[Ident, PodView]] = defaultdict(dict)
        self._of_sweep: dict[Kind, defaultdict[Ident, dict[Ident, View]]] = {
            kind: defaultdict(dict) for kind in (Kind.TRIAL, Kind.POD, Kind.JOB)
        }
        self._pods_of_job: defaultdict[Ident, dict[Ident, PodView]] = defaultdict(dict)
        self._tombstones = Tombstones()
        self._following = Following()

    # -- reading

    def sweep(self, namespace: str, name: str) -> SweepView | None:
        """The sweep of that name."""
        return cast(SweepView | None, self._objects[Kind.SWEEP].get((namespace, name)))

    def trial(self, namespace: str, name: str) -> TrialView | None:
        """The trial of that name."""
        return cast(TrialView | None, self._objects[Kind.TRIAL].get((namespace, name)))

    def pod(self, namespace: str, name: str) -> PodView | None:
        """The pod of that name, if it is one of ours."""
        return cast(PodView | None, self._objects[Kind.POD].get((namespace, name)))

    def job(self, namespace: str, name: str) -> JobView | None:
        """The Job of that name, if it is one of ours."""
        return cast(JobView | None, self._objects[Kind.JOB].get((namespace, name)))

    def sweeps(self) -> Iterator[SweepView]:
        """All sweeps."""
        return cast(Iterator[SweepView], iter(tuple(self._objects[Kind.SWEEP].values())))

    def pods_of_trial(self, namespace: str, trial: str) -> tuple[PodView, ...]:
        """Pods whose trial label names it, by name; the caller compares ``owner_uid`` (foreign pods are included)."""
        found = self._pods_of_trial.get((namespace, trial), {})
        return tuple(found[ident] for ident in sorted(found))

    def pods_of_job(self, namespace: str, job: str) -> tuple[PodView, ...]:
        """Pods of a sweep, and of no trial, that an object of that name owns; the caller compares ``owner_uid`` and ``sweep``."""
        return tuple(self._pods_of_job.get((namespace, job), {}).values())

    def pods_of_sweep(self, namespace: str, sweep: str) -> tuple[PodView, ...]:
        """All pods whose sweep label names it, of trials and of Jobs."""
        return cast(tuple[PodView, ...], tuple(self._of_sweep[Kind.POD].get((namespace, sweep), {}).values()))

    def trials_of_sweep(self, namespace: str, sweep: str) -> tuple[TrialView, ...]:
        """Trials whose sweep label names it."""
        return cast(tuple[TrialView, ...], tuple(self._of_sweep[Kind.TRIAL].get((namespace, sweep), {}).values()))

    def jobs_of_sweep(self, namespace: str, sweep: str) -> tuple[JobView, ...]:
        """Jobs whose sweep label names it."""
        return cast(tuple[JobView, ...], tuple(self._of_sweep[Kind.JOB].get((namespace, sweep), {}).values()))

    def follow_trials(self, namespace: str, sweep: str) -> Changes:
        """From now on: names of trials of the sweep (`trials_of_sweep`) that are put or dropped. One reader of each sweep."""
        return self._following.follow(Kind.TRIAL, namespace, sweep)

    def follow_jobs(self, namespace: str, sweep: str) -> Changes:
        """From now on: names of Jobs of the sweep that are put or dropped, or that own a pod of it (`pods_of_job`) that is. One
        reader of each sweep."""
        return self._following.follow(Kind.JOB, namespace, sweep)

    def all(self, kind: Kind) -> tuple[View, ...]:
        """A snapshot of all views of a kind."""
        return tuple(self._objects[kind].values())

    def size(self, kind: Kind) -> int:
        """Number of objects of a kind."""
        return len(self._objects[kind])

    # -- writing

    def put(self, view: View) -> bool:
        """Take over a view; False if it is not news (same or older version, or already deleted)."""
        kind = KIND_OF_VIEW[type(view)]
        ident = (view.namespace, view.name)
        known = self._objects[kind].get(ident)
        if (known is None or known.uid != view.uid) and self._tombstones.covers(view.uid, view.resource_version):
            return False
        if known is not None:
            if view.resource_version <= known.resource_version:
                return False
            self._unindex(kind, ident, known)
        self._objects[kind][ident] = view
        self._index(kind, ident, view)
        return True

    def delete(self, view: View, *, for_good: bool = False) -> bool:
        """The object was seen deleted, or without the label by which it is watched: drop it (not a newer one of the same name),
        and take nothing of it again that is not newer. ``for_good``: we have deleted it, whatever version is known of it."""
        kind = KIND_OF_VIEW[type(view)]
        self._tombstones.add(view.uid, FOR_GOOD if for_good else view.resource_version)
        ident = (view.namespace, view.name)
        known = self._objects[kind].get(ident)
        if known is None or known.uid != view.uid or not (for_good or known.resource_version <= view.resource_version):
            return False
        self._drop(kind, ident, known)
        return True

    def prune(self, kind: Kind, listed: Iterable[str], resource_version: int, namespace: str | None = None) -> tuple[View, ...]:
        """Drop what a complete LIST (uids ``listed`` at ``resource_version``, of one namespace or all) did not hold.

        Objects newer than the list stay: they were created after it was taken. Returns the dropped views.
        """
        alive = set(listed)
        ghosts = tuple(
            view
            for view in self._objects[kind].values()
            if view.uid not in alive
            and view.resource_version <= resource_version
            and (namespace is None or view.namespace == namespace)
        )
        for view in ghosts:
            self._drop(kind, (view.namespace, view.name), view)
        return ghosts

    # -- indexes

    def _index(self, kind: Kind, ident: Ident, view: View) -> None:
        if isinstance(view, PodView):
            where = self._owned(view)
            if where is not None:
                pods, owner = where
                pods[owner][ident] = view
        if kind in self._of_sweep and view.sweep is not None:
            self._of_sweep[kind][(view.namespace, view.sweep)][ident] = view
        self._note(kind, view)

    def _unindex(self, kind: Kind, ident: Ident, view: View) -> None:
        if isinstance(view, PodView):
            where = self._owned(view)
            if where is not None:
                _remove(*where, ident)
        if kind in self._of_sweep and view.sweep is not None:
            _remove(self._of_sweep[kind], (view.namespace, view.sweep), ident)
        self._note(kind, view)

    def _owned(self, pod: PodView) -> tuple[defaultdict[Ident, dict[Ident, PodView]], Ident] | None:
        """The index that a pod stands in, and the key there."""
        if pod.trial is not None:
            return self._pods_of_trial, (pod.namespace, pod.trial)
        if pod.sweep is not None and pod.owner_name is not None:
            return self._pods_of_job, (pod.namespace, pod.owner_name)
        return None

    def _note(self, kind: Kind, view: View) -> None:
        """Tell whoever follows the sweep of the view."""
        if isinstance(view, TrialView | JobView):
            name: str | None = view.name
        elif isinstance(view, PodView) and view.trial is None:
            name, kind = view.owner_name, Kind.JOB
        else:
            return
        if name is not None and view.sweep is not None:
            objects = self._of_sweep[kind].get((view.namespace, view.sweep), ())
            self._following.note(name, len(objects), kind, view.namespace, view.sweep)

    def _drop(self, kind: Kind, ident: Ident, view: View) -> None:
        self._unindex(kind, ident, view)
        del self._objects[kind][ident]

    def check(self) -> None:
        """Raise AssertionError if an index disagrees with the objects; for tests."""
        pods = {i: v for i, v in self._objects[Kind.POD].items() if v.trial is not None}
        assert pods == dict(itertools.chain.from_iterable(d.items() for d in self._pods_of_trial.values()))
        pods = {i: v for i, v in self._objects[Kind.POD].items() if v.trial is None and v.sweep and v.owner_name}
        assert pods == dict(itertools.chain.from_iterable(d.items() for d in self._pods_of_job.values()))
        for kind, index in self._of_sweep.items():
            owned = {i: v for i, v in self._objects[kind].items() if v.sweep is not None}
            assert owned == dict(itertools.chain.from_iterable(d.items() for d in index.values()))


def _remove(index: defaultdict[Ident, dict[Ident, Any]], key: Ident, ident: Ident) -> None:
    members = index[key]
    members.pop(ident, None)
    if not members:
        del index[key]
