"""What a downloaded sweep holds, read as plain JSON: runs with their rewards from seals and their verdicts from judgements.

Everything that is not as it should be becomes a line in `wrong`, with the object it is in.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from realcli.storage.local import LocalStore

Json = Any


@dataclass
class Seen:
    """One scenario in one run."""

    verdicts: list[str] = field(default_factory=list)
    contaminated: bool = False
    reason: str | None = None


@dataclass
class Counted:
    """One trial."""

    ordinal: int
    configuration: str
    task: str
    mode: str
    repeat: int
    member: Json = None  # None: its group is not judged
    reward: Fraction | None = None
    scenarios: dict[str, Seen] = field(default_factory=dict)
    instances: list[Json] = field(default_factory=list)  # raw, with `why`: what contaminates it, or None
    generic: list[Json] = field(default_factory=list)
    audit: Json = None
    failure: Json = None
    facts: Json = None
    seal: Json = None  # the work seal
    checks: Json = None  # of the verify seal

    @property
    def judged(self) -> bool:
        """Its group is."""
        return self.member is not None

    @property
    def valid(self) -> bool:
        """It counts."""
        return self.judged and self.member["phase"] == "Sealed"

    @property
    def success(self) -> bool:
        """The tests' verdict."""
        return self.reward == 1


@dataclass
class Evidence:
    """The sweep."""

    root: Path
    lock: Json
    trials: list[Counted]
    costs: list[Json]
    groups: int
    objects: dict[str, str]  # key in storage -> digest
    wrong: list[str]


def digest(data: bytes) -> str:
    """`sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def read_sweep(root: Path, summary: Json) -> Evidence:
    """Everything below a sweep's folder that the summary rests on."""
    raw = (root / "sweep.json").read_bytes()
    lock = json.loads(raw)
    wrong = [] if digest(raw) == summary["lockDigest"] else [f"sweep.json has the digest {digest(raw)}, the report names another"]
    tasks, names = sorted(t["name"] for t in lock["tasks"]), sorted(c["name"] for c in lock["configurations"])
    cells = itertools.product(tasks, range(1, lock["repeats"] + 1), names, sorted(lock["modes"]))
    trials = [Counted(ordinal, c, t, m, r) for ordinal, (t, r, c, m) in enumerate(cells)]
    found = Evidence(root, lock, trials, [], 0, {}, wrong)
    judge = summary["judge"]["digest"]
    for configuration, task in itertools.product(names, tasks):
        _group(found, root / "judgements" / judge[7:15] / configuration / task, judge, configuration, task)
    return found


def _key(found: Evidence, path: Path) -> str:
    """Where an object lies in storage: the report's name is taken over these keys, wherever the copy lies."""
    sweep, prefix = found.lock["sweep"], found.lock["spec"]["storage"].get("prefix", "")
    folder = f"{sweep['name']}-{sweep['uid'].replace('-', '')[:8]}"
    parts = [prefix.strip("/"), "sweeps", sweep["namespace"], folder, path.relative_to(found.root).as_posix()]
    return "/".join(part for part in parts if part)


def _load(found: Evidence, path: Path) -> Json:
    if not path.is_file():
        found.wrong.append(f"{path.relative_to(found.root)} does not exist")
        return None
    data = path.read_bytes()
    found.objects[_key(found, path)] = digest(data)
    return json.loads(data)


def _group(found: Evidence, folder: Path, judge: str, configuration: str, task: str) -> None:
    numbers = [int(p.stem[6:]) for p in folder.glob("group-*.json") if p.stem[6:].isdigit()]
    if not numbers:
        return
    group = _load(found, folder / f"group-{max(numbers)}.json")
    found.groups += 1
    if (group["judge"], group["configuration"], group["task"]) != (judge, configuration, task):
        found.wrong.append(f"{folder.relative_to(found.root)}: the group is of another judge, configuration or task")
    found.costs += [group["cost"]] if "cost" in group else []
    labels = _load(found, folder / group["failures"]) if "failures" in group else None
    by_ordinal = {item["ordinal"]: item for item in labels["failures"]} if labels else {}
    for member in group["members"]:
        trial = found.trials[member["ordinal"]]
        if (trial.configuration, trial.task, trial.mode, trial.repeat) != (configuration, task, member["mode"], member["repeat"]):
            found.wrong.append(f"trial {trial.ordinal} of {configuration}, {task} is another cell of the plan")
        trial.member, trial.failure = member, by_ordinal.get(member["ordinal"])
        trial.facts = group.get("facts", {}).get(str(member["ordinal"]))
        if trial.valid:
            _seals(found, trial)
            if trial.mode == "COLLAB":
                _verdicts(found, trial, folder, group)


def _seals(found: Evidence, trial: Counted) -> None:
    member = trial.member
    said = Fraction(member["reward"]) if "reward" in member else None
    if "workSeal" not in member:
        trial.reward = said
        if said:
            found.wrong.append(f"trial {trial.ordinal} has the reward {said} and no seal")
        return
    attempt = found.root / "trials" / f"{trial.ordinal:05d}" / f"attempt-{member['attempt']}"
    report = verify_attempt(StoreReader(LocalStore(attempt), ""), "", member["workSeal"], member.get("seal"))
    found.wrong += [f"trial {trial.ordinal}: {finding}" for finding in report.findings]
    if not report.ok:
        trial.reward = said
        return
    trial.seal = json.loads((attempt / "work-seal.json").read_bytes())
    if "verifyAttempt" in member:
        seal = json.loads((attempt / f"verify-{member['verifyAttempt']}" / "seal.json").read_bytes())
        trial.reward, trial.checks = Fraction(seal["reward"]), seal.get("checks")
    else:
        trial.reward = said
    _recount(found, trial, attempt)


def _recount(found: Evidence, trial: Counted, attempt: Path) -> None:
    """Turns and tool calls, counted in the ledger's own lines."""
    turns = calls = 0
    gaps = False
    for segment in sorted((attempt / "ledger").glob("*.jsonl")):
        for line in segment.read_bytes().splitlines():
            event = json.loads(line)
            turns = max(turns, event["turn"])
            calls += event["kind"] == "tool_call"
            gaps = gaps or (event["kind"] == "record_gap" and event["data"].get("record") == "ledger")
    facts, seal, checks = trial.facts or {}, trial.seal, trial.checks or {}
    held = [
        ("turns", facts.get("turns"), seal["turns"]),
        ("costUsd", facts.get("costUsd"), seal.get("costUsd")),
        ("workingSeconds", facts.get("workingSeconds"), seal.get("workingSeconds")),
        ("checksPassed", facts.get("checksPassed"), checks.get("passed")),
        ("checksTotal", facts.get("checksTotal"), checks.get("total")),
    ]
    counted = [] if gaps else [("turns", seal["turns"], turns), ("toolCalls", facts.get("toolCalls"), calls)]
    for name, told, known in (*held, *counted):
        if told is not None and known is not None and told != known:
            found.wrong.append(f"trial {trial.ordinal}: {name} {told} by the record, {known} by seal and ledger")


def _verdicts(found: Evidence, trial: Counted, folder: Path, group: Json) -> None:
    task = next(item for item in found.lock["tasks"] if item["name"] == trial.task)
    if "workSeal" not in trial.member:
        trial.scenarios = {name: Seen(["unscored"]) for name in task.get("scenarios", [])}
        return
    judgement = _load(found, folder / str(group["judgements"].get(str(trial.repeat))))
    if judgement is None:
        return
    name = group.get("audits", {}).get(str(trial.repeat))
    trial.audit = _load(found, folder / name) if name else None
    for record in (judgement, trial.audit):
        if record and (record["ordinal"], record["workSeal"], record["judge"]) != (
            trial.ordinal, trial.member["workSeal"], group["judge"]):  # fmt: skip
            found.wrong.append(f"trial {trial.ordinal}: its judgement or audit is of another run or judge")
    spoilt = trial.audit.get("contaminated", {}) if trial.audit else {}
    trial.instances = [_instance(item, spoilt) for item in judgement["instances"]]
    trial.generic = [_instance(item, spoilt) for item in judgement.get("generic", [])]
    for item in trial.instances:
        seen = trial.scenarios.setdefault(item["scenario"], Seen())
        seen.verdicts += item["verdicts"]
        seen.contaminated = seen.contaminated or item["why"] is not None
        seen.reason = seen.reason or item["why"] or item.get("reason")


def _instance(item: Json, spoilt: Json) -> Json:
    verdicts = [check["verdict"] for check in item.get("checks", [])]
    if not verdicts and item["state"] == "unscored":
        verdicts = ["unscored"]
    why = spoilt.get(item["probe"]) or (item.get("reason", "the instrument") if item["state"] == "contaminated" else None)
    return {**item, "verdicts": verdicts, "why": why}
