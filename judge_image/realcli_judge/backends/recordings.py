"""Recorded answers in a directory, one file per request named by its key: played back, or made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from pydantic import ValidationError

from realcli.api.faults import first_fault
from realcli.judging.model import Exchange, JudgeReply, JudgeRequest
from realcli.judging.port import Backend, BackendRefused
from realcli_judge.backends.stored import asked_of, exchange_of, told

MAX_SHOWN = 160  # characters of each side of a difference


class ReplayMiss(BackendRefused):
    """No recording answers this request. Programs that replay exit with 3."""


class ReplayBackend:
    """`Backend` of recordings. What was never recorded is a miss, and no model is asked."""

    def __init__(self, directory: Path) -> None:
        if not directory.is_dir():
            how = f"REALCLI_JUDGE_BACKEND=record:{directory} of a judge Job, or realcli judge calibrate --record {directory}"
            raise BackendRefused(f"{directory} is no directory of recordings; what makes one: {how}")
        self._directory = directory

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`; `ReplayMiss` names checks, key and the nearest recording."""
        path = self._directory / f"{request.key}.json"
        if not path.is_file():
            raise ReplayMiss(self._miss(request))
        exchange = _read(path)
        if exchange.request != request:
            raise BackendRefused(f"{path} holds the recording of another request ({exchange.key}); its name was changed")
        return told(exchange.reply)

    def _miss(self, request: JudgeRequest) -> str:
        about = ", ".join(request.about[:6]) + (" …" if len(request.about) > 6 else "")
        told = (
            f"no recording of {request.purpose} ({about}), vote {request.vote}: {self._directory}/{request.key}.json is not there"
        )
        wanted = list(_leaves(request.dump()))
        best: tuple[int, Path, str] | None = None
        for path in sorted(self._directory.glob("*.json")):
            same, difference = _compare(wanted, list(_leaves(_read(path).request.dump())))
            if best is None or same > best[0]:
                best = (same, path, difference)
        if best is None:
            return f"{told}; there is no recording at all"
        return f"{told}; the nearest is {best[1].name}, which first differs at {best[2]}"


class RecordBackend:
    """`Backend` that asks another one and writes down what it says. A recording is never overwritten."""

    def __init__(self, directory: Path, inner: Backend) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BackendRefused(f"{directory} is no directory that can be recorded into: {error.strerror}") from error
        self._directory, self._inner = directory, inner

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`."""
        path = self._directory / f"{request.key}.json"
        if path.exists():
            raise BackendRefused(f"{path} is there already and is not overwritten; record into an empty directory, or replay it")
        reply = asked_of(self._inner, request)
        data = json.dumps(exchange_of(request, reply, None).dump(), ensure_ascii=False, indent=1, sort_keys=True)
        try:
            write_whole(path, data.encode())
        except FileExistsError:
            raise BackendRefused(f"{path} was written by somebody else meanwhile; it is not overwritten") from None
        return told(reply)


def write_whole(path: Path, data: bytes) -> None:
    """A file that is there whole or not at all, whenever the program is killed. FileExistsError: it is there already."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".part") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), 0o644)  # as any other file: a temporary one is its owner's alone
        os.fsync(file.fileno())
        os.link(file.name, path)  # unlike a rename it never replaces


def _read(path: Path) -> Exchange:
    try:
        return Exchange.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise BackendRefused(f"{path} is no recording of this version: {first_fault(error)}") from error


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, plain value) in a fixed order, so that two requests can be compared from their beginning."""
    if isinstance(value, dict):
        for name in _ordered(value):
            yield from _leaves(value[name], f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    else:
        yield path, value


_ORDER = ("schema", "purpose", "about", "vote", "model", "api", "parameters", "system", "tools", "messages")


def _ordered(value: dict[str, Any]) -> list[str]:
    return sorted(value, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def _compare(wanted: list[tuple[str, Any]], found: list[tuple[str, Any]]) -> tuple[int, str]:
    """(equal leaves from the start, the first difference in words)."""
    for number, (one, other) in enumerate(zip(wanted, found, strict=False)):
        if one != other:
            at = 0
            a, b = str(one[1]), str(other[1])
            while at < min(len(a), len(b)) and a[at] == b[at]:
                at += 1
            start = max(0, at - 40)
            place = one[0] if one[0] == other[0] else f"{one[0]} (recorded: {other[0]})"
            return number, f"{place}: asked {a[start : start + MAX_SHOWN]!r}, recorded {b[start : start + MAX_SHOWN]!r}"
    longer = wanted if len(wanted) > len(found) else found
    same = min(len(wanted), len(found))
    if len(wanted) == len(found):
        return same, "nothing that is shown"
    who = "asked" if longer is wanted else "recorded"
    return same, f"{longer[same][0]}, which only the {who} request has"
