"""What a run has left behind, read: the API server's audit log, the stand-in's journal and bucket, the objects at the end."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

OPERATOR, SCRIPT, CONTROLLERS, STAND_IN = "operator", "jobs", "controller-manager", "stand-in"
"""Users, one per program."""
JUDGE = "-judge"
"""How names of Jobs that judge end, and of bare pods; a script's."""
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request of the audit log."""

    user: str
    verb: str
    resource: str
    name: str
    """"" where the server is asked to make one up (the pods of Jobs)."""
    code: int
    time: float
    """Of the answer; seconds since the epoch."""
    received: float
    uri: str

    @property
    def made(self) -> bool:
        """Whether it changed something: answered well, and no dry run."""
        return 0 < self.code < 400 and not self.dry

    @property
    def dry(self) -> bool:
        """Whether it only asks if it could (the two questions about the cluster's features, once per sweep)."""
        return "dryRun=All" in self.uri

    @property
    def what(self) -> str:
        """Verb and resource."""
        return f"{self.verb} {self.resource}"


def requests(lines: Iterable[str]) -> Iterator[Request]:
    """Of a log in JSON lines. A line cut by a crash of the server is an error: it could be the one that matters."""
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} of the audit log is no JSON: {error}") from error
        if event["stage"] not in {"ResponseComplete", "ResponseStarted", "Panic"}:
            continue
        if event["stage"] == "ResponseStarted" and event["verb"] != "watch":
            continue
        ref = event.get("objectRef") or {}
        resource = ref.get("resource", "") + (f"/{ref['subresource']}" if ref.get("subresource") else "")
        code = (event.get("responseStatus") or {}).get("code", 0)
        at, received = (datetime.fromisoformat(event[key]).timestamp() for key in ("stageTimestamp", "requestReceivedTimestamp"))
        user, name = event["user"]["username"], ref.get("name", "")
        yield Request(user, event["verb"], resource, name, code, at, received, event["requestURI"])


def log_of(folder: Path) -> Iterator[Request]:
    """The audit log of a run, with the parts the API server has rotated away. Nobody may write to it any more."""

    def lines() -> Iterator[str]:
        paths = sorted(folder.glob("audit*.log"))
        if not paths:
            raise FileNotFoundError(f"{folder}: no audit log; is it the folder of a run (--keep)?")
        for path in paths:
            with path.open() as file:
                yield from file

    return requests(lines())


@dataclass(frozen=True)
class Traces:
    """``journal``: a line per pod that ended. ``bucket``: key → digest of what lies there. ``left``: names of the pods that are
    there at the end. ``sweep``: its object at the end."""

    log: Iterable[Request]
    journal: Collection[Json]
    bucket: Mapping[str, str]
    trials: Collection[Json]
    left: Collection[str]
    sweep: Json


def traces_of(folder: Path) -> Traces:
    """Of the folder of a run: audit*.log, journal.jsonl, bucket/, trials.json, pods.json (names), sweep.json."""

    def read(name: str) -> Any:
        return json.loads((folder / name).read_text())

    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return Traces(
        log_of(folder),
        journal,
        bucket_of(folder / "bucket"),
        read("trials.json"),
        frozenset(read("pods.json")),
        read("sweep.json"),
    )


def bucket_of(folder: Path) -> dict[str, str]:
    """Key → digest of every object of a bucket."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def steady(journal: Collection[Json]) -> float:
    """Pods that end per minute between a fifth and four fifths of the trials: while the window neither fills nor empties, which a
    large run does once and a small one does not much else."""
    ends = sorted(line["at"] for line in journal if line["role"] == "verify")
    begin, end = ends[len(ends) // 5], ends[4 * len(ends) // 5]
    return 60 * sum(begin < line["at"] <= end for line in journal) / (end - begin)


@dataclass(frozen=True)
class ScriptFound:
    """The run of a script: ``findings`` as those of a sweep, ``first`` and ``last`` as its: the first pod that was created, the
    last word on a pod of a trial (the last status of its Job, or the last end of a bare pod); seconds since the epoch.
    ``judged_meanwhile`` is the number of pods that judge and ended in that time."""

    findings: list[str]
    first: float
    last: float
    judged_meanwhile: int
    writes_of_all: dict[str, int]


def script_found(log: Iterable[Request], journal: Collection[Json], pods: int, *, jobs: bool) -> ScriptFound:
    """Whether a script's run was whole, ``pods`` pods, with a Job each or bare ones, and when."""
    writes, made = Counter[str](), Counter[str]()
    started: list[float] = []
    last = 0.0
    creates, maker = ("create jobs", CONTROLLERS) if jobs else ("create pods", SCRIPT)
    final = (CONTROLLERS, "jobs/status") if jobs else (STAND_IN, "pods/status")
    for request in log:
        if request.verb in WRITES:
            writes[request.user] += 1
        if not request.made:
            continue
        if (request.user, request.what) == (SCRIPT, creates):
            made[request.name] += 1
        if (request.user, request.what) == (maker, "create pods"):
            started.append(request.time)
        elif (request.user, request.resource) == final and not request.name.endswith(JUDGE):
            last = max(last, request.time)
    findings = [f"{name} was created {number} times" for name, number in made.items() if number > 1]
    ended = len({line["pod"] for line in journal})
    counted = (
        (len(made), f"{'Jobs' if jobs else 'pods'} were asked for"),
        (len(started), "pods were created"),
        (ended, "pods ended"),
    )
    for number, told in counted:
        if number != pods:
            findings.append(f"{number} {told}, {pods} should have been")
    meanwhile = sum(line["role"] == "judge" and line["at"] <= last for line in journal)
    return ScriptFound(findings, min(started, default=0.0), last, meanwhile, dict(writes))
