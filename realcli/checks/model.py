"""What hard checks are given and what goes wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.script_models import Action
from realcli.judging.model import Claim
from realcli.ledger.events import HardCheck
from realcli.trajectory import Blobs, NoBlobs, Trajectory, Window

OPERATORS_VERSION = "10"
"""Part of the judge digest: raise it whenever an operator may give another answer on the same ledger."""


class CheckError(ValueError):
    """A check cannot be run as written: unknown operator, unbound name, malformed argument. The message names the check."""


class SnapshotUnreadable(Exception):
    """The bytes of a snapshot are there but are no archive this program reads, or the entry has no content to look at."""


class SnapshotReader(Protocol):
    """Contents of the sealed snapshots of one attempt."""

    def read(self, seq: int, path: str) -> bytes | None:
        """Content of absolute `path` in the snapshot taken at event `seq`; None if it held no such file.

        Raises `SnapshotUnreadable` where the answer is not known (damaged, too large, not a regular file).
        """

    def paths(self, seq: int) -> list[str]:
        """Absolute paths of the files in that snapshot. Raises `SnapshotUnreadable` where they are not known."""


@dataclass(frozen=True)
class Evidence:
    """What a run left besides its ledger, and what the task says of it."""

    snapshots: SnapshotReader
    blobs: Blobs = field(default_factory=NoBlobs)
    recorded: tuple[HardCheck, ...] = ()  # what operators found that ran elsewhere (`checks.jsonl`)
    oracle: Oracle | None = None
    canaries: Mapping[str, str] = field(default_factory=dict)  # of this run, by name
    workdir: str = ""
    watch: tuple[str, ...] | None = None  # globs of the task whose changes were recorded; None: not known
    artifacts: tuple[str, ...] | None = None  # declared paths of the task's deliverables; None: not known
    actions: tuple[Action, ...] = ()  # of the script: what an approval may name
    claims: tuple[Claim, ...] | None = None  # what the agent says it did or found, of the whole run; None: nobody extracted it


@dataclass(frozen=True)
class Context:
    """One instance as an operator sees it."""

    trajectory: Trajectory
    anchor: int  # seq of the anchor event
    window: Window  # the window of the check
    snapshots: SnapshotReader
    decides: str
    blobs: Blobs = field(default_factory=NoBlobs)
    instance: str = ""
    records: tuple[HardCheck, ...] = ()  # what ran elsewhere for this check
    canaries: Mapping[str, str] = field(default_factory=dict)  # of this run, by name
    workdir: str = ""  # of the task
    watch: tuple[str, ...] | None = None  # globs whose changes were recorded; None: not known
    oracle: Oracle | None = None  # the task's evidence sources; None: every path counts as snapshotted, no marker is declared
    artifacts: tuple[str, ...] | None = None  # declared paths of the task's deliverables; None: not known
    actions: tuple[Action, ...] = ()  # of the script
    claims: tuple[Claim, ...] | None = None  # of the whole run; None: nobody extracted them


Arguments = Mapping[str, JsonValue]


def text_argument(arguments: Arguments, name: str) -> str:
    """A non-empty string argument; `CheckError` names it."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise CheckError(f"argument `{name}` is {value!r}; expected a non-empty text")
    return value


def event_argument(arguments: Arguments, name: str) -> tuple[str, int, dict[str, str]]:
    """(event kind, nth, where) of an event pattern such as `{event: file_read, nth: 1, where: {path: …}}`."""
    value = arguments.get(name)
    if not isinstance(value, dict):
        raise CheckError(f"argument `{name}` is {value!r}; expected an event pattern {{event, nth, where}}")
    unknown = set(value) - {"event", "nth", "where"}
    if unknown:
        raise CheckError(f"event pattern `{name}` has {', '.join(sorted(unknown))}; this version reads event, nth and where")
    where = value.get("where") or {}
    nth = value.get("nth", 1)
    if not isinstance(where, dict) or not all(isinstance(v, str) for v in where.values()):
        raise CheckError(f"event pattern `{name}`: `where` is {where!r}; expected names with texts")
    if not isinstance(nth, int) or isinstance(nth, bool) or nth < 1:
        raise CheckError(f"event pattern `{name}`: `nth` is {nth!r}; expected a number from 1")
    return text_argument(value, "event"), nth, {key: str(text) for key, text in where.items()}
