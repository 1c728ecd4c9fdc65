"""Whose move it is, by what passed the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from realcli_session.gateway.dialects.base import Called, Said
from realcli_session.gateway.witness import Witness

CALL = [Said("I look."), Called("c1", "Bash", {})]
ROWS: list[tuple[str, list[tuple[Any, ...]], str]] = [
    ("nothing yet", [], "user"),
    ("a request", [("asked", "r1", True)], "model"),
    ("it answers with a call", [("asked", "r1", True), ("said", "r1", CALL)], "model"),
    ("it has answered with a call", [("asked", "r1", True), ("said", "r1", CALL), ("ended", "r1", True)], "agent"),
    ("it has answered with a text", [("asked", "r1", True), ("said", "r1", CALL[:1]), ("ended", "r1", True)], "user"),
    ("cut in the middle of a call", [("asked", "r1", True), ("said", "r1", CALL), ("ended", "r1", False)], "user"),
    ("a sub-agent works", [("asked", "r1", False), ("said", "r1", CALL)], "user"),
    ("a sub-agent asks for a call", [("asked", "r1", False), ("said", "r1", CALL), ("ended", "r1", True)], "user"),
    ("an old one is left open", [("asked", "r1", True), ("asked", "r2", True), ("ended", "r2", True)], "user"),
    ("an old one ends late", [("asked", "r1", True), ("asked", "r2", True), ("ended", "r1", True)], "model"),
    ("the results go in", [("asked", "r1", True), ("said", "r1", CALL), ("ended", "r1", True), ("asked", "r2", True)], "model"),
]


@pytest.mark.parametrize(("name", "events", "want"), ROWS, ids=[row[0] for row in ROWS])
def test_move(name: str, events: list[tuple[Any, ...]], want: str) -> None:
    witness = Witness()
    for kind, request, given in events:
        if kind == "asked":
            witness.asked(request, main=given)
        elif kind == "said":
            witness.said(request, given)
        else:
            witness.ended(request, complete=given)
    assert witness.move == want
    assert ("c1" in witness.calls) is any(CALL is event[2] for event in events)
