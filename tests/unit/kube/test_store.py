"""Store: indexes, staleness, tombstones, pruning."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from realcli_operator.kube.names import LABEL_SWEEP, LABEL_TRIAL, Kind
from realcli_operator.kube.project import project
from realcli_operator.kube.store import Store
from realcli_operator.kube.tombstones import FOR_GOOD, Tombstones
from realcli_operator.kube.views import View


def view(kind: Kind, name: str, version: int, uid: str | None = None, *, namespace: str = "one", **labels: str | None) -> View:
    known = {LABEL_SWEEP: labels.get("sweep", "s"), LABEL_TRIAL: labels.get("trial")}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "labels": {key: value for key, value in known.items() if value},
    }
    return project(kind, {"metadata": metadata})


def test_pods_are_found_by_trial_and_jobs_by_sweep() -> None:
    store = Store()
    store.put(view(Kind.POD, "t-a2", 2, trial="t"))
    store.put(view(Kind.POD, "t-a1", 1, trial="t"))
    store.put(view(Kind.POD, "other", 3, trial="u"))
    store.put(view(Kind.POD, "plan-x", 3))
    store.put(view(Kind.POD, "t-a1", 4, "uid-elsewhere", namespace="two", trial="t"))
    store.put(view(Kind.JOB, "plan", 5))
    store.put(view(Kind.TRIAL, "t", 6))
    assert [pod.name for pod in store.pods_of_trial("one", "t")] == ["t-a1", "t-a2"]
    assert [pod.uid for pod in store.pods_of_trial("two", "t")] == ["uid-elsewhere"]
    assert store.pods_of_trial("one", "none") == ()
    assert {pod.name for pod in store.pods_of_sweep("one", "s")} == {"t-a1", "t-a2", "other", "plan-x"}
    assert [job.name for job in store.jobs_of_sweep("one", "s")] == ["plan"]
    assert [trial.name for trial in store.trials_of_sweep("one", "s")] == ["t"]
    assert store.pod("two", "t-a1") is not None
    assert store.pod("two", "t-a2") is None


def test_older_and_equal_versions_are_no_news() -> None:
    store = Store()
    assert store.put(view(Kind.POD, "p", 10, trial="t"))
    assert not store.put(view(Kind.POD, "p", 10, trial="t"))
    assert not store.put(view(Kind.POD, "p", 9, trial="other"))
    assert [p.resource_version for p in store.pods_of_trial("one", "t")] == [10]


def test_a_changed_label_moves_the_pod_in_the_index() -> None:
    store = Store()
    store.put(view(Kind.POD, "p", 1, trial="t"))
    store.put(view(Kind.POD, "p", 2, trial="u"))
    assert store.pods_of_trial("one", "t") == ()
    assert [p.name for p in store.pods_of_trial("one", "u")] == ["p"]
    store.check()


def test_a_deleted_object_never_comes_back_but_its_name_may() -> None:
    store = Store()
    store.put(view(Kind.POD, "p", 5, "first", trial="t"))
    assert store.delete(view(Kind.POD, "p", 7, "first", trial="t"))
    assert not store.put(view(Kind.POD, "p", 6, "first", trial="t")), "a late list brought a deleted pod back"
    assert store.put(view(Kind.POD, "p", 9, "second", trial="t"))
    assert not store.delete(view(Kind.POD, "p", 7, "first", trial="t")), "a late DELETED hit the next pod of that name"
    assert [p.uid for p in store.pods_of_trial("one", "t")] == ["second"]


def test_an_object_that_lost_its_label_and_has_it_again_is_back() -> None:
    store = Store()
    store.put(view(Kind.POD, "p", 5, trial="t"))
    assert store.delete(view(Kind.POD, "p", 7, trial="t"))
    assert store.put(view(Kind.POD, "p", 9, trial="t"))
    assert not store.delete(view(Kind.POD, "p", 7, trial="t")), "a slower source told of its going"
    assert [p.resource_version for p in store.pods_of_trial("one", "t")] == [9]


def test_what_we_have_deleted_ourselves_does_not_come_back_in_a_later_version() -> None:
    store = Store()
    store.put(view(Kind.POD, "p", 5, trial="t"))
    assert store.delete(view(Kind.POD, "p", 5, trial="t"), for_good=True)
    assert not store.put(view(Kind.POD, "p", 6, trial="t")), "its last change before it went came late"


def test_prune_drops_what_the_list_did_not_hold() -> None:
    store = Store()
    for name, version in [("kept", 1), ("ghost", 2), ("newer", 50)]:
        store.put(view(Kind.POD, name, version, trial="t"))
    store.put(view(Kind.POD, "foreign", 3, namespace="two", trial="t"))
    store.put(view(Kind.JOB, "job", 4))
    ghosts = store.prune(Kind.POD, ["uid-kept"], 40, "one")
    assert [ghost.name for ghost in ghosts] == ["ghost"]
    assert {pod.name for pod in store.all(Kind.POD)} == {"kept", "newer", "foreign"}
    assert [g.name for g in store.prune(Kind.POD, ["uid-kept"], 60)] == ["newer", "foreign"]
    assert store.size(Kind.JOB) == 1
    store.check()


class StoreMachine(RuleBasedStateMachine):
    """A cluster whose events arrive late, twice and mixed with lists: the indexes always agree, and a final LIST makes
    the store equal to the cluster."""

    @initialize()
    def start(self) -> None:
        self.store = Store()
        self.version = 0
        self.cluster: dict[str, View] = {}
        self.events: list[tuple[str, View]] = []
        self.snapshots: list[tuple[int, dict[str, View]]] = []

    @rule(name=st.sampled_from("pqr"), trial=st.sampled_from([None, "t", "u"]))
    def write(self, name: str, trial: str | None) -> None:
        self.version += 1
        uid = self.cluster[name].uid if name in self.cluster else f"{name}{self.version}"
        self.cluster[name] = view(Kind.POD, name, self.version, uid, trial=trial)
        self.events.append(("put", self.cluster[name]))

    @rule(name=st.sampled_from("pqr"))
    def remove(self, name: str) -> None:
        if name in self.cluster:
            self.version += 1
            gone = self.cluster.pop(name)
            self.events.append(("delete", view(Kind.POD, name, self.version, gone.uid, trial=gone.trial)))

    @rule(name=st.sampled_from("pqr"))
    def lose_label_and_get_it_again(self, name: str) -> None:
        """A watch with a selector tells of the first as of a deletion."""
        if name in self.cluster:
            found = self.cluster[name]
            self.version += 2
            self.events.append(("delete", view(Kind.POD, name, self.version - 1, found.uid, trial=found.trial)))
            self.cluster[name] = view(Kind.POD, name, self.version, found.uid, trial=found.trial)
            self.events.append(("put", self.cluster[name]))

    @rule()
    def take_snapshot(self) -> None:
        self.snapshots.append((self.version, dict(self.cluster)))

    @rule(count=st.integers(1, 5))
    def deliver(self, count: int) -> None:
        for what, found in self.events[:count]:
            getattr(self.store, what)(found)
        del self.events[:count]

    @rule()
    def list_arrives(self) -> None:
        if self.snapshots:
            version, items = self.snapshots.pop(0)
            for found in items.values():
                self.store.put(found)
            self.store.prune(Kind.POD, [found.uid for found in items.values()], version)

    @rule()
    def gap(self) -> None:
        self.events.clear()

    @invariant()
    def indexes_agree(self) -> None:
        if hasattr(self, "store"):
            self.store.check()

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        self.deliver(len(self.events))
        self.snapshots = [(self.version, dict(self.cluster))]
        self.list_arrives()
        assert {v.name: v.uid for v in self.store.all(Kind.POD)} == {n: v.uid for n, v in self.cluster.items()}
        assert {v.name: v.resource_version for v in self.store.all(Kind.POD)} == {
            n: v.resource_version for n, v in self.cluster.items()
        }


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


def test_snapshot_survives_changes(pod_manifest: Any) -> None:
    store = Store()
    store.put(view(Kind.SWEEP, "s", 1))
    for sweep in store.sweeps():
        store.delete(sweep)
    assert store.size(Kind.SWEEP) == 0


def test_the_newest_deletions_are_remembered_whatever_a_uid_looks_like() -> None:
    tombs = Tombstones(3)
    plain = [str(UUID(int=number)) for number in (10, 171, 2**127)]
    for uid in ("uid-a", *plain[:2], plain[1]):
        tombs.add(uid, 5)
    assert all(tombs.covers(uid, 5) for uid in ("uid-a", *plain[:2]))
    tombs.add(plain[2], 5)
    assert (tombs.covers("uid-a", 5), len(tombs)) == (False, 3)
    assert all(tombs.covers(uid, 5) for uid in plain)
    odd = [plain[1].upper(), plain[1].replace("-", ""), plain[1][:-1] + "g", plain[1][:-2] + "  ", str(UUID(int=11))]
    assert not any(tombs.covers(uid, 5) for uid in odd)


def test_an_end_covers_what_is_not_newer_and_only_grows() -> None:
    tombs = Tombstones()
    tombs.add("a", 7)
    tombs.add("a", 5)
    assert [tombs.covers("a", version) for version in (6, 7, 8)] == [True, True, False]
    tombs.add("a", FOR_GOOD)
    assert tombs.covers("a", 2**62)
