"""Lines, rate limit, routes, errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_operator.kube import errors
from realcli_operator.kube.errors import error_for
from realcli_operator.kube.lines import LineBuffer
from realcli_operator.kube.names import Kind, Resource, sweep_key, trial_key
from realcli_operator.kube.project import project
from realcli_operator.kube.rate import RateLimit
from realcli_operator.kube.route import SWEEP_DEBOUNCE, route


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 60)))
def test_lines_do_not_depend_on_the_chunking(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    points = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    buffer = LineBuffer()
    found = [line for a, b in itertools.pairwise(points) for line in buffer.feed(stream[a:b])]
    assert found == lines


def test_an_unfinished_line_is_kept_back() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"one\n\ntw") == [b"one"]
    assert buffer.feed(b"") == []
    assert buffer.feed(b"o\n") == [b"two"]


async def test_rate_limit_allows_a_burst_and_then_an_even_pace(clock: Any) -> None:
    limit = RateLimit(10, burst=3, clock=clock)
    assert [round(limit.reserve(), 3) for _ in range(6)] == [0, 0, 0, 0.1, 0.2, 0.3]
    clock.advance(100)
    assert [round(limit.reserve(), 3) for _ in range(4)] == [0, 0, 0, 0.1]


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (5, 0)])
def test_rate_limit_refuses_nonsense(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="rate > 0 and burst >= 1"):
        RateLimit(rate, burst)


def _view(kind: Kind, **labels: str) -> Any:
    metadata = {"name": "x", "namespace": "one", "uid": "u", "resourceVersion": "1"}
    return project(kind, {"metadata": metadata | {"labels": {f"realcli.dev/{k}": v for k, v in labels.items()}}})


@pytest.mark.parametrize(
    ("kind", "labels", "expected"),
    [
        (Kind.SWEEP, {}, [(sweep_key("one", "x"), 0)]),
        (Kind.TRIAL, {"sweep": "s"}, [(trial_key("one", "x"), 0), (sweep_key("one", "s"), SWEEP_DEBOUNCE)]),
        (Kind.TRIAL, {}, [(trial_key("one", "x"), 0)]),
        (Kind.POD, {"sweep": "s", "trial": "t"}, [(trial_key("one", "t"), 0)]),
        (Kind.POD, {"sweep": "s"}, [(sweep_key("one", "s"), 0)]),
        (Kind.POD, {}, []),
        (Kind.JOB, {"sweep": "s"}, [(sweep_key("one", "s"), 0)]),
        (Kind.JOB, {"sweep": "s", "role": "plan"}, [(sweep_key("one", "s"), 0)]),
        (Kind.JOB, {"sweep": "s", "role": "judge"}, [(sweep_key("one", "s"), SWEEP_DEBOUNCE)]),
        (Kind.POD, {"sweep": "s", "role": "judge"}, [(sweep_key("one", "s"), SWEEP_DEBOUNCE)]),
    ],
)
def test_routes(kind: Kind, labels: dict[str, str], expected: list[Any]) -> None:
    assert list(route(_view(kind, **labels))) == expected


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (418, "", errors.PermanentError),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "Expired", errors.Gone),
        (500, "InternalError", errors.ServerError),
        (503, "", errors.ServerError),
    ],
)
def test_errors_are_typed_by_status_and_reason(status: int, reason: str, expected: type[Exception]) -> None:
    error = error_for(status, reason, "the server's words")
    assert type(error) is expected
    assert "the server's words" in str(error)


def test_paths() -> None:
    core = Resource(Kind.POD, "v1", "Pod", "pods", None)
    group = Resource(Kind.TRIAL, "realcli.dev/v1alpha1", "Trial", "trials", None)
    assert core.path() == "/api/v1/pods"
    assert core.path("one", "p", "log") == "/api/v1/namespaces/one/pods/p/log"
    assert group.path("one", "t", "status") == "/apis/realcli.dev/v1alpha1/namespaces/one/trials/t/status"
