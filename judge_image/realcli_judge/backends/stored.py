"""Answers that lie in storage are not asked for again; new ones are stored before they count."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Literal

from pydantic import ValidationError

from realcli.api.faults import first_fault
from realcli.api.models import Prices
from realcli.judging.model import Exchange, JudgeReply, JudgeRequest, Message
from realcli.judging.port import Backend, RequestTooLarge
from realcli.judging.purse import cost_of
from realcli.storage.port import AlreadyStored, NotFound, ObjectStore
from realcli_judge.inputs import Refused

TOO_LARGE: Literal["too-large"] = "too-large"


class StoredBackend:
    """`Backend` over another one. `key_of`: where the exchange of a request key lies. The first stored reply counts.

    `model`: the id that has to answer; None: nobody knows it, and the first that answers stays the one. What another model says
    neither counts nor is stored: the judge's digest names one.
    """

    def __init__(
        self,
        store: ObjectStore,
        key_of: Callable[[str], str],
        inner: Backend,
        prices: Prices | None = None,
        model: str | None = None,
    ) -> None:
        self._store, self._key_of, self._inner, self._prices = store, key_of, inner, prices
        self._one = OneModel(model)

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`. `Refused` for an exchange that is none, of another request, or by another model.

        That a request is too large is an answer like any other: stored, so that a Job that runs again ends the same sessions.
        """
        return told(self._complete(request))

    def _complete(self, request: JudgeRequest) -> JudgeReply:
        key = self._key_of(request.key)
        found = self._read(key, request)
        if found is not None:
            return found
        reply = asked_of(self._inner, request)
        self._one.check(reply, "the endpoint's answer")
        data = exchange_of(request, reply, self._prices).canonical()
        try:
            self._store.put_once(key, data)
        except AlreadyStored:  # another Job of this group was faster; a second reply never counts
            first = self._read(key, request)
            if first is None:
                raise
            return first
        return Exchange.model_validate_json(data).reply  # as whoever reads it later finds it, to the order of names

    def _read(self, key: str, request: JudgeRequest) -> JudgeReply | None:
        try:
            data = self._store.get(key)
        except NotFound:
            return None
        try:
            exchange = Exchange.model_validate_json(data)
        except ValidationError as error:
            raise Refused(
                "EvidenceChanged", f"{key} is no exchange with a judge of this version: {first_fault(error)}"
            ) from error
        if exchange.key != request.key or exchange.request != request:
            raise Refused("EvidenceSwapped", f"{key} holds the exchange of another request ({exchange.key})")
        self._one.check(exchange.reply, key)
        return exchange.reply


class OneModel:
    """The model id that has to answer; None: nobody knows it, and the first that answers stays the one. For several threads."""

    def __init__(self, model: str | None = None) -> None:
        self._model, self._lock = model, Lock()

    def check(self, reply: JudgeReply, what: str) -> None:
        """`Refused` for a reply by another one. That a request is too large says no model."""
        if reply.stop == TOO_LARGE:
            return
        with self._lock:
            expected = self._model = reply.model if self._model is None else self._model
        if reply.model != expected:
            found, before = reply.model or "a model it does not name", expected or "one without name"
            raise Refused(
                "JudgeModelChanged",
                f"{what} is by {found}, the answers before it by {before}: one score cannot be by two judges; name a model id in "
                "spec.judge.model that stays, and judge again by spec.from",
            )


class OneModelBackend:
    """`Backend` over another one whose answers nobody stores: still by one model."""

    def __init__(self, inner: Backend) -> None:
        self._inner, self._one = inner, OneModel()

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`. `Refused` for a reply by another model than the first."""
        reply = self._inner.complete(request)
        self._one.check(reply, "the endpoint's answer")
        return reply


def asked_of(backend: Backend, request: JudgeRequest) -> JudgeReply:
    """What a backend says, also that the request is too large: a reply to be stored, with the endpoint's words as its text."""
    try:
        return backend.complete(request)
    except RequestTooLarge as error:
        return JudgeReply(message=Message(role="assistant", text=str(error)), stop=TOO_LARGE, model="")


def told(reply: JudgeReply) -> JudgeReply:
    """A stored reply as a session is given it. `RequestTooLarge` as the endpoint said it then."""
    if reply.stop == TOO_LARGE:
        raise RequestTooLarge(reply.message.text)
    return reply


def exchange_of(request: JudgeRequest, reply: JudgeReply, prices: Prices | None) -> Exchange:
    """Request and reply as they are stored."""
    cost = cost_of(reply.usage, prices) if reply.usage is not None else None
    return Exchange(key=request.key, request=request, reply=reply, cost_usd=None if cost is None else f"{cost:.9f}")
