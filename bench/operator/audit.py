"""Independent of the operator: what happened, from the API server's audit log, the stand-in's journal and bucket, and the objects
at the end.

Findings are broken promises: a pod created twice, a trial without its end, a seal that is not the one of the bucket. What is
counted is counted here too, so that no figure is the operator's own word. Pure; `python -m bench.operator.audit FOLDER` reads
what `--keep FOLDER` has left.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path

from bench.operator.traces import OPERATOR, WRITES, Json, Request, Traces, traces_of

OF_TRIAL = frozenset({"trials", "trials/status", "pods", "pods/status"})
"""Resources whose writes are those of trials; the rest is the sweep's (Jobs, its status, events)."""
CELL = ("configuration", "task", "mode", "repeat")
ENDS_PODS = frozenset({OPERATOR, "kwok"})
"""Who may remove a trial's pod: who asks for it, and the kubelet that carries it out."""


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


class _Made:
    """Which objects of a kind were created, and when the server answered so."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)
        self._unanswered: dict[str, float] = {}

    def take(self, request: Request) -> None:
        """A request to create one."""
        outcome, name = _Outcome.of(request), request.name
        found = outcome is _Outcome.THERE and name not in self.times and name in self._unanswered
        if outcome is _Outcome.MADE or found:
            self.times[name].append(request.time)
        elif outcome is _Outcome.UNKNOWN:
            self._unanswered[name] = request.time

    def settle(self, there: Collection[str]) -> None:
        """What was made and nobody was told of, seen by what it left (``there``): who asked was killed, and his successor
        found it in a list."""
        for name, time in self._unanswered.items():
            if name not in self.times and name in there:
                self.times[name].append(time)

    def twice(self, what: str) -> list[str]:
        """Findings."""
        return [f"{what} {name} was created {len(times)} times" for name, times in self.times.items() if len(times) > 1]


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


def audit(traces: Traces, expected: int, groups: int) -> Found:
    """All checks of a sweep in which nothing but the operator's own death went wrong: a trial has one work and one verify pod, a
    group one judge Job. ``expected``: trials of the plan."""
    return _Audit(traces, expected, groups).found


class _Audit:
    def __init__(self, traces: Traces, expected: int, groups: int) -> None:
        self.found = Found()
        self._traces = traces
        self._pods, self._trials, self._jobs = _Made(), _Made(), _Made()
        self._asked_to_delete: set[str] = set()
        self._told: dict[str, float] = {}  # trial → when its last status came in
        self._job_asked: dict[str, float] = {}  # Job → when its creation did
        self._ended: dict[str, list[Json]] = defaultdict(list)
        for line in traces.journal:
            self._ended[line["pod"]].append(line)
        self._read_log(traces.log)
        self._pods.settle(self._ended)
        self._of_pods()
        for trial in traces.trials:
            self._of_trial(trial)
        self._of_bucket()
        self._complete(expected, groups)
        self._cells(expected)
        self._groups()
        self._sweep(expected, groups)
        self._count(expected)

    def _find(self, *texts: str) -> None:
        self.found.findings.extend(texts)

    # -- the log

    def _read_log(self, log: Iterable[Request]) -> None:
        kept = {name: Counter[str]() for name in ("writes", "gets", "lists", "refused", "asked", "writes_of_all")}
        for request in log:
            if request.verb in WRITES:
                kept["writes_of_all"][request.user] += 1
                self._written(request)
            if request.user != OPERATOR:
                continue
            what = f"ask whether to {request.what}" if request.dry else request.what
            if request.dry:
                kept["asked"][what] += 1
            elif request.verb in WRITES:
                kept["writes"][what] += 1
            elif request.verb in {"get", "list"}:
                kept[f"{request.verb}s"][what] += 1
            if request.code >= 400:
                kept["refused"][f"{what} {request.code}"] += 1
        for name, counter in kept.items():
            setattr(self.found, name, dict(counter))

    def _written(self, request: Request) -> None:
        mine = request.user == OPERATOR
        match request.what:
            case "create pods" if mine and not request.dry:
                self._pods.take(request)
            case "create trials":
                self._trials.take(request)
            case "create jobs" if mine:
                self._jobs.take(request)
                if request.made:
                    self._job_asked[request.name] = request.received
            case "delete pods" if mine:
                self._asked_to_delete.add(request.name)  # whether it worked, the pods say that are left at the end
            case "delete pods" if request.made and request.user not in ENDS_PODS and request.name in self._pods.times:
                self._find(f"pod {request.name} was deleted by {request.user}")
            case "delete trials" | "delete jobs" | "delete benchmarksweeps" if request.made:
                self._find(f"{request.user} deleted {request.name or 'all'} of {request.resource}")
            case what if what.startswith("deletecollection") and request.made:
                self._find(f"{request.user} deleted all of {request.resource}")
            case "patch trials/status" | "update trials/status" if request.made:
                self._told[request.name] = max(request.received, self._told.get(request.name, 0.0))
                if mine:
                    self.found.last = max(self.found.last, request.time)

    # -- checks

    def _of_pods(self) -> None:
        """Each pod of a trial: created once, ended once, deleted."""
        self._find(*self._pods.twice("pod"), *self._trials.twice("Trial"), *self._jobs.twice("Job"))
        for name in self._pods.times:
            if name not in self._asked_to_delete:
                self._find(f"pod {name}: the operator never asked for its deletion")
            if name in self._traces.left:
                self._find(f"pod {name} is still there")
            if name not in self._ended:
                self._find(f"pod {name} is lost: it was created and has left nothing in the bucket")
        for name, lines in self._ended.items():
            uids = {line["uid"] for line in lines}
            if len(uids) > 1:
                self._find(f"pod {name} ran under {len(uids)} uids")
            if any(not line["new"] for line in lines):
                self._find(f"pod {name} found its object in the bucket already: {lines[0].get('key')}")
            if lines[0]["role"] in {"work", "verify"} and name not in self._pods.times:
                self._find(f"pod {name} ended, and the operator never created it")

    def _of_trial(self, trial: Json) -> None:
        """Its end, and that the seals it names are those of its own pods."""
        name, status = trial["metadata"]["name"], trial.get("status", {})
        if status.get("phase") != "Sealed":
            self._find(f"trial {name} is lost: it ended {status.get('phase')} {status.get('reason')}")
            return
        attempt, verified = status.get("attempt"), status.get("verifyAttempt")
        if (attempt, verified) != (1, 1):
            self._find(f"trial {name} took attempt {attempt}, verify {verified}: something was lost on the way")
        work = f"{name}-a{attempt}"
        verify = f"{work}-v{verified}"
        for pod, digest in ((work, status.get("workSealDigest")), (verify, status.get("sealDigest"))):
            if pod not in self._pods.times:
                self._find(f"trial {name} is sealed without a pod {pod}")
            known = {line["digest"] for line in self._ended.get(pod, ())}
            if digest not in known:
                there = ", ".join(sorted(known)) or "nothing"
                self._find(f"trial {name}: its status names {digest}, the bucket has {there} of pod {pod}")
        if any(line["workSeal"] != status.get("workSealDigest") for line in self._ended.get(verify, ())):
            self._find(f"trial {name}: what was verified is not what its work pod sealed")

    def _of_bucket(self) -> None:
        """What the journal says was written is there, and nothing else."""
        told: dict[str, str] = {}
        for line in self._traces.journal:
            if "key" in line:
                told.setdefault(line["key"], line["digest"])
        for key, digest in told.items():
            there = self._traces.bucket.get(key)
            if there != digest:
                self._find(f"the bucket has {there or 'nothing'} at {key}, its pod wrote {digest}")
        self._find(*(f"no pod wrote {key}, and the bucket has it" for key in self._traces.bucket if key not in told))

    def _complete(self, expected: int, groups: int) -> None:
        """The numbers: every trial of the plan, two pods each, every group judged once, one plan and one report."""
        names = {trial["metadata"]["name"] for trial in self._traces.trials}
        if len(names) != expected:
            self._find(f"{len(names)} trials at the end, {expected} in the plan")
        known = {f"{name}-a1" for name in names} | {f"{name}-a1-v1" for name in names}
        self._find(*(f"pod {name} is nobody's first work or verify pod" for name in sorted(self._pods.times.keys() - known)))
        roles = Counter(lines[0]["role"] for lines in self._ended.values())
        for role, number in (("plan", 1), ("judge", groups), ("report", 1), ("work", expected), ("verify", expected)):
            if roles[role] != number:
                self._find(f"{roles[role]} {role} pods ended, {number} should have")

    def _cells(self, expected: int) -> None:
        """Every run of the product (configuration, task, mode, repeat) has one trial."""
        seen: dict[tuple[object, ...], str] = {}
        for trial in self._traces.trials:
            cell, name = tuple(trial["spec"][factor] for factor in CELL), trial["metadata"]["name"]
            if cell in seen:
                self._find(f"trials {seen[cell]} and {name} are the same run: {', '.join(map(str, cell))}")
            seen[cell] = name
        product = math.prod(len(set(values)) for values in zip(*seen, strict=True)) if seen else 0
        if product != expected:
            self._find(f"the trials are of a product of {product} runs, {expected} in the plan")

    def _groups(self) -> None:
        """Every (configuration, task) is judged, and its judge Job was made after the last status of its trials."""
        last: dict[tuple[str, str], float] = {}
        for trial in self._traces.trials:
            group = trial["spec"]["configuration"], trial["spec"]["task"]
            last[group] = max(last.get(group, 0.0), self._told.get(trial["metadata"]["name"], 0.0))
        judged: dict[tuple[str, str], str] = {}
        for pod, lines in self._ended.items():
            if lines[0]["role"] == "judge":
                configuration, task = lines[0]["key"].split("/")[-3:-1]
                judged[configuration, task] = pod
        for group in sorted(last.keys() | judged.keys()):
            where = ", ".join(group)
            if group not in judged:
                self._find(f"group {where} was never judged")
            elif group not in last:
                self._find(f"pod {judged[group]} judged {where}, which is no group of the trials")
            else:
                job = judged[group].rpartition("-")[0]
                asked = self._job_asked.get(job)
                if asked is None:
                    self._find(f"pod {judged[group]} judged {where}, and the operator never created Job {job}")
                elif asked < last[group]:
                    self._find(
                        f"group {where} was given to Job {job} {last[group] - asked:.3f} s before its last trial had ended"
                    )

    def _sweep(self, expected: int, groups: int) -> None:
        """What the sweep says of itself in the end."""
        status = self._traces.sweep.get("status", {})
        counts = status.get("counts", {})
        told = (status.get("state"), counts.get("sealed"), counts.get("groupsJudged"))
        if told != ("Complete", expected, groups):
            self._find(f"the sweep says {told[0]}, {told[1]} sealed, {told[2]} groups judged; {expected} and {groups} should be")

    # -- figures

    def _count(self, expected: int) -> None:
        found = self.found
        found.first = min((time for times in self._pods.times.values() for time in times), default=0.0)
        found.pods, found.trials = len(self._pods.times), len(self._traces.trials)
        judges = [line for lines in self._ended.values() for line in lines if line["role"] == "judge"]
        found.judged_meanwhile = sum(line["at"] <= found.last for line in judges)
        found.groups = len({line["key"] for line in judges})
        own = _of_trials(found.writes)
        found.writes_per_trial, found.all_writes_per_trial = own / expected, sum(found.writes.values()) / expected
        found.reads_per_trial = _of_trials(found.gets) / expected


def _of_trials(counted: Mapping[str, int]) -> int:
    return sum(number for what, number in counted.items() if what.split()[1] in OF_TRIAL)


def of_folder(folder: Path, expected: int, groups: int) -> Found:
    """`audit` of what a run has left."""
    return audit(traces_of(folder), expected, groups)


def main() -> None:
    """Print what a folder's audit says; exit code 1 with findings."""
    folder = Path(sys.argv[1])
    size = json.loads((folder / "size.json").read_text())
    found = of_folder(folder, size["trials"], size["groups"])
    print(json.dumps(asdict(found), indent=1))
    sys.exit(bool(found.findings))


if __name__ == "__main__":
    main()
