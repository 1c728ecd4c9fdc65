"""Independent of the operator: what happened, from the API server's audit log, the stand-in's journal and the Trials at the end.

Findings are broken promises: a pod created twice, a trial without its end, a seal that is not the one of the bucket. What is
counted is counted here too, so that no figure is the operator's own word. Pure; `python -m bench.operator.audit FOLDER` reads
what `--keep FOLDER` has left.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

OPERATOR = "operator"
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
OF_TRIAL = frozenset({"trials", "trials/status", "pods", "pods/status"})
"""Resources whose writes are those of trials; the rest is the sweep's (Jobs, its status, events)."""
SHOWN = 50

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request of the audit log."""

    user: str
    verb: str
    resource: str
    name: str
    code: int
    time: float
    """Of the answer; seconds since the epoch."""
    received: float
    uri: str

    @property
    def made(self) -> bool:
        """Whether it changed something: answered well, and no dry run."""
        return self.code < 400 and not self.dry

    @property
    def dry(self) -> bool:
        """Whether it only asks if it could (the two questions about the cluster's features, once per sweep)."""
        return "dryRun=All" in self.uri


class _Outcome(Enum):
    """What became of a creation."""

    MADE = 1
    THERE = 2
    """Refused because there is one."""
    UNKNOWN = 3
    """No answer in time: it may have been made all the same, which the next try finds out."""
    REFUSED = 4

    @staticmethod
    def of(request: Request) -> _Outcome:
        """By the code of the answer."""
        if request.code == 0 or request.code >= 500:
            return _Outcome.UNKNOWN
        if request.code == 409:
            return _Outcome.THERE
        return _Outcome.MADE if request.code < 400 else _Outcome.REFUSED


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


@dataclass
class Found:
    """What the audit says."""

    findings: list[str] = field(default_factory=list)
    writes: dict[str, int] = field(default_factory=dict)
    """Of the operator: "verb resource" → number, answered well or not."""
    gets: dict[str, int] = field(default_factory=dict)
    lists: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    """Dry runs."""
    refused: dict[str, int] = field(default_factory=dict)
    """Of the operator: "verb resource code" → number."""
    writes_of_all: dict[str, int] = field(default_factory=dict)
    """Writes of everybody: user → number."""
    pods: int = 0
    trials: int = 0
    groups: int = 0
    writes_per_trial: float = 0.0
    all_writes_per_trial: float = 0.0
    """With those of the sweep: Jobs, its status, its plan, events."""
    reads_per_trial: float = 0.0
    first: float = 0.0
    last: float = 0.0
    """Times of the first pod created and the last status of a trial written by the operator; seconds since the epoch."""
    judged_meanwhile: int = 0
    """Pods of judge Jobs that ended in that time."""

    def find(self, text: str) -> None:
        """Add a finding; only the first of many are told."""
        self.findings.append(text)


def audit(
    log: Iterable[Request], journal: Iterable[Json], trials: Iterable[Json], left: Collection[str], expected: int, groups: int
) -> Found:
    """All checks of a sweep in which nothing but the operator's own death went wrong: a trial has one work and one verify pod.
    ``left``: names of the pods that are there at the end."""
    found = Found()
    created: dict[str, list[float]] = defaultdict(list)
    deleted: dict[str, int] = Counter()
    made: dict[str, list[float]] = defaultdict(list)
    unanswered: set[str] = set()
    writes, gets, lists, refused, asked, everybody = (Counter[str]() for _ in range(6))
    for request in log:
        if request.verb in WRITES:
            everybody[request.user] += 1
        if request.user == OPERATOR:
            what = (
                f"{request.verb} {request.resource}" if not request.dry else f"ask whether to {request.verb} {request.resource}"
            )
            if request.dry:
                asked[what] += 1
            elif request.verb in WRITES:
                writes[what] += 1
            elif request.verb == "get":
                gets[what] += 1
            elif request.verb == "list":
                lists[what] += 1
            if request.code >= 400:
                refused[f"{what} {request.code}"] += 1
        mine = request.user == OPERATOR
        if mine and (request.verb, request.resource) == ("create", "pods") and not request.dry:
            outcome = _Outcome.of(request)
            if outcome is _Outcome.MADE or (
                outcome is _Outcome.THERE and not created[request.name] and request.name in unanswered
            ):
                created[request.name].append(request.time)
            elif outcome is _Outcome.UNKNOWN:
                unanswered.add(request.name)
        elif mine and (request.verb, request.resource) == ("delete", "pods"):
            deleted[request.name] += 1  # whether it worked, the pods say that are left at the end
        if not request.made:
            continue
        if (request.verb, request.resource) == ("create", "trials"):
            made[request.name].append(request.time)
        if request.resource == "trials/status" and request.user == OPERATOR:
            found.last = max(found.last, request.time)
    ended: dict[str, list[Json]] = defaultdict(list)
    for line in journal:
        ended[line["pod"]].append(line)
    listed = list(trials)
    created = defaultdict(list, {name: times for name, times in created.items() if times})
    _of_pods(found, created, deleted, ended, left)
    for trial in listed:
        _of_trial(found, trial, created, ended)
    _complete(found, listed, made, created, ended, expected, groups)
    found.first = min((time for times in created.values() for time in times), default=0.0)
    found.pods, found.trials = len(created), len(listed)
    found.judged_meanwhile = sum(
        line["role"] == "judge" and line["at"] <= found.last for lines in ended.values() for line in lines
    )
    found.groups = sum(lines[0]["role"] == "judge" for lines in ended.values())
    found.writes, found.gets, found.lists, found.refused = dict(writes), dict(gets), dict(lists), dict(refused)
    found.asked = dict(asked)
    found.writes_of_all = dict(everybody)
    count = max(1, len(listed))
    own = sum(number for what, number in writes.items() if what.split()[1] in OF_TRIAL)
    found.writes_per_trial, found.all_writes_per_trial = own / count, sum(writes.values()) / count
    found.reads_per_trial = sum(number for what, number in gets.items() if what.split()[1] in OF_TRIAL) / count
    return found


def _of_pods(
    found: Found,
    created: dict[str, list[float]],
    deleted: dict[str, int],
    ended: dict[str, list[Json]],
    left: Collection[str],
) -> None:
    """Each pod of a trial: created once, ended once, deleted."""
    for name, times in created.items():
        if len(times) > 1:
            found.find(f"pod {name} was created {len(times)} times")
        if not deleted.get(name):
            found.find(f"pod {name}: the operator never asked for its deletion")
        if name in left:
            found.find(f"pod {name} is still there")
        if name not in ended:
            found.find(f"pod {name} is lost: it was created and has left nothing in the bucket")
    for name, lines in ended.items():
        if len({line["uid"] for line in lines}) > 1:
            found.find(f"pod {name} ran under {len({line['uid'] for line in lines})} uids")
        if any(not line["new"] for line in lines):
            found.find(f"pod {name} found its object in the bucket already: {lines[0].get('key')}")
        if lines[0]["role"] in {"work", "verify"} and name not in created:
            found.find(f"pod {name} ended, and the operator never created it")


def _of_trial(found: Found, trial: Json, created: dict[str, list[float]], ended: dict[str, list[Json]]) -> None:
    """Its end, and that the seals it names are those of its own pods."""
    name, status = trial["metadata"]["name"], trial.get("status", {})
    if status.get("phase") != "Sealed":
        found.find(f"trial {name} is lost: it ended {status.get('phase')} {status.get('reason')}")
        return
    work = f"{name}-a{status['attempt']}"
    verify = f"{work}-v{status['verifyAttempt']}"
    if (status["attempt"], status["verifyAttempt"]) != (1, 1):
        took = f"attempt {status['attempt']}, verify {status['verifyAttempt']}"
        found.find(f"trial {name} took {took}: something was lost on the way")
    for pod, digest in ((work, status.get("workSealDigest")), (verify, status.get("sealDigest"))):
        if pod not in created:
            found.find(f"trial {name} is sealed without a pod {pod}")
        known = {line["digest"] for line in ended.get(pod, ())}
        if digest not in known:
            there = ", ".join(sorted(known)) or "nothing"
            found.find(f"trial {name}: its status names {digest}, the bucket has {there} of pod {pod}")
    if any(line["workSeal"] != status.get("workSealDigest") for line in ended.get(verify, ())):
        found.find(f"trial {name}: what was verified is not what its work pod sealed")


def _complete(
    found: Found,
    trials: list[Json],
    made: dict[str, list[float]],
    created: dict[str, list[float]],
    ended: dict[str, list[Json]],
    expected: int,
    groups: int,
) -> None:
    """The numbers: every trial of the plan once, two pods each, every group judged once, one plan and one report."""
    names = {trial["metadata"]["name"] for trial in trials}
    if len(names) != expected:
        found.find(f"{len(names)} trials at the end, {expected} in the plan")
    for name, times in made.items():
        if len(times) > 1:
            found.find(f"Trial {name} was created {len(times)} times")
    known = {f"{name}-a1" for name in names} | {f"{name}-a1-v1" for name in names}
    for name in sorted(created.keys() - known)[:SHOWN]:
        found.find(f"pod {name} is nobody's first work or verify pod")
    roles = Counter(lines[0]["role"] for lines in ended.values())
    for role, number in (("plan", 1), ("judge", groups), ("report", 1), ("work", expected), ("verify", expected)):
        if roles[role] != number:
            found.find(f"{roles[role]} {role} pods ended, {number} should have")


def of_folder(folder: Path, expected: int, groups: int) -> Found:
    """`audit` of what a run has left: audit*.log, journal.jsonl, trials.json, pods.json (names)."""

    def log() -> Iterator[str]:
        for path in sorted(folder.glob("audit*.log")):
            with path.open() as lines:
                yield from lines

    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    trials = json.loads((folder / "trials.json").read_text())
    left = frozenset(json.loads((folder / "pods.json").read_text()))
    return audit(requests(log()), journal, trials, left, expected, groups)


def main() -> None:
    """Print what a folder's audit says; exit code 1 with findings."""
    folder = Path(sys.argv[1])
    size = json.loads((folder / "size.json").read_text())
    found = of_folder(folder, size["trials"], size["groups"])
    print(json.dumps(asdict(found), indent=1))
    sys.exit(bool(found.findings))


if __name__ == "__main__":
    main()
