"""A sweep, an index and a platform to plan with."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.plan import Images, Platform, SweepIdentity
from realcli.api.sweep import SweepSpec
from realcli.benchmark.models import Index, IndexTask
from realcli_session.plan.lock import PlanRequest

SPEC: dict[str, Any] = {
    "benchmark": {"source": "s3://evals/benchmarks/mini/1.0.0"},
    "agents": [{"name": "claude-code"}],
    "models": [
        {
            "name": "sonnet",
            "model": "claude-sonnet-4-5",
            "endpoints": {"anthropic": {"url": "https://api.example", "apiKey": {"secretRef": {"name": "a", "key": "k"}}}},
        }
    ],
    "storage": {"bucket": "evals", "prefix": "pre", "credentials": {"secretRef": {"name": "s3"}}},
}


def a_task(name: str = "alpha", **changes: Any) -> IndexTask:
    fields = {
        "name": name,
        "digest": sha256_digest(name.encode()),
        "image": f"registry.example/{name}:1",
        "public_bundle": sha256_digest(b"public" + name.encode()),
        "private_bundle": sha256_digest(b"private" + name.encode()),
        "category": "data analysis",
        "information_structure": "additive",
        "workdir": "/app",
        "artifacts": ["/app"],
        "verifier_seconds": 60.0,
        "requirements": 2,
        "slices": 2,
    }
    return IndexTask.model_validate(fields | changes)


def an_index(*tasks: IndexTask) -> Index:
    return Index(name="mini", version="1.0.0", tasks=list(tasks or (a_task(),)))


def a_request(**changes: Any) -> PlanRequest:
    return PlanRequest(
        sweep=SweepIdentity(namespace="audits", name="first", uid="0123abcd-0000-0000-0000-000000000000"),
        spec=SweepSpec.model_validate(SPEC | changes),
        platform=Platform(
            operator_version="0.2.0",
            images=Images(session="s", judge="j", toolkit="t", agents={"claude-code/2.1.140": "a"}),
            user_namespaces=False,
            image_volumes=False,
        ),
    )


@pytest.fixture
def build() -> Any:
    """Builders: task, index, request."""

    class Build:
        task = staticmethod(a_task)
        index = staticmethod(an_index)
        request = staticmethod(a_request)
        spec = SPEC

    return Build
