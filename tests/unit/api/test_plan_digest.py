"""The digest of a plan is worked out once, and is never that of another plan."""

from __future__ import annotations

from realcli.api.base import sha256_digest
from realcli.api.plan import Images, Plan, PlanConfiguration, PlanTask, Platform

DIGEST = "sha256:" + "0" * 64


def _plan() -> Plan:
    images = Images(session="s", judge="j", toolkit="t", agents={})
    return Plan(
        sweep_uid="u",
        root="sweeps/one/first-u",
        lock_digest=DIGEST,
        benchmark_digest=DIGEST,
        platform=Platform(operator_version="1", images=images, user_namespaces=True, image_volumes=True),
        tasks=[PlanTask(name="t", image="i", verifier_seconds=1)],
        configurations=[PlanConfiguration(name="a.b", agent="a", program="codex", agent_version="1", model="b")],
        modes=["EXEC"],
        repeats=1,
    )


def test_it_is_that_of_the_content() -> None:
    plan = _plan()
    assert plan.content_digest() == sha256_digest(plan.canonical()) == plan.content_digest()


def test_a_copy_with_other_values_has_its_own() -> None:
    plan = _plan()
    before = plan.content_digest()
    other = plan.model_copy(update={"repeats": 2})
    assert other.content_digest() == sha256_digest(other.canonical()) != before
    assert plan.content_digest() == before


def test_that_it_is_known_makes_no_difference() -> None:
    known, fresh = _plan(), _plan()
    known.content_digest()
    assert known == fresh
    assert known.dump() == fresh.dump()
    assert Plan.read(known.canonical()) == known
