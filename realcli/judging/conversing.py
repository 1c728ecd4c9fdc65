"""Holds sessions with a backend, one by one or several at once, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from realcli.api.models import Prices
from realcli.judging.port import Backend, RequestTooLarge
from realcli.judging.purse import Limit, Purse, Spent, spent_on
from realcli.judging.session import Ask, Done, give_up, step, tokens_of

T = TypeVar("T")
R = TypeVar("R")
EXHAUSTED = "the judge's budget for this group is spent"


class Pool(Protocol):
    """Runs jobs, in whatever order; results in the order of the jobs."""

    def __call__(self, jobs: Sequence[Callable[[], R]]) -> list[R]:
        """All of them; the first error is raised."""


def one_by_one(jobs: Sequence[Callable[[], R]]) -> list[R]:
    """A `Pool` without threads."""
    return [job() for job in jobs]


@dataclass(frozen=True)
class Held(Generic[T]):
    """A session that is over, and what it took."""

    done: Done[T]
    spent: Spent
    exhausted: bool = False


def converse(first: Ask[T] | Done[T], backend: Backend, limit: Limit, prices: Prices | None = None) -> Held[T]:
    """One session to its end. What the backend raises goes on up, but for a request that is too large: that is unscored."""
    now, spent = first, Spent()
    while isinstance(now, Ask):
        if limit.reached(spent, tokens_of(now.state), prices):
            return Held(give_up(now.state, EXHAUSTED), spent, exhausted=True)
        try:
            reply = backend.complete(now.request)
        except RequestTooLarge as error:
            return Held(give_up(now.state, f"the run cannot be read whole by this judge: {error}"), spent)
        spent = spent.plus(spent_on(now.request, reply, prices))
        now = step(now.state, reply)
    return Held(now, spent)


def hold(sessions: Sequence[Ask[T] | Done[T]], backend: Backend, purse: Purse, pool: Pool = one_by_one) -> list[Done[T]]:
    """A wave of sessions; each may spend an even part of what is left in the purse."""
    return [held.done for held in wave(sessions, backend, purse, pool)]


def wave(
    sessions: Sequence[Ask[T] | Done[T]], backend: Backend, purse: Purse, pool: Pool = one_by_one, waves: int = 1
) -> list[Held[T]]:
    """The same with what each took. `waves`: this one and those of the same kind that are to come; what is left in the purse is
    for all of them, so that the first does not spend what the others need."""
    due = sum(isinstance(session, Ask) for session in sessions)
    limit = purse.split(due * waves)

    def job(session: Ask[T] | Done[T]) -> Callable[[], Held[T]]:
        return lambda: converse(session, backend, limit, purse.prices)

    held = pool([job(session) for session in sessions])
    for one in held:
        purse.add(one.spent)
        purse.exhausted = purse.exhausted or one.exhausted
    return held
