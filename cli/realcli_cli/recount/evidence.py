"""What a downloaded sweep holds, read as plain JSON: runs with their rewards from seals and their verdicts from judgements.

Everything that is not as it should be becomes a line in `wrong`, with the object it is in.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from realcli.api.base import Frozen
from realcli.api.faults import first_fault
from realcli.audit.model import AuditRecord
from realcli.ledger.reader import FileTooLong, StoreReader
from realcli.ledger.seals import ControlSeal
from realcli.ledger.verify import verify_attempt
from realcli.scoring.records import Failures, Group, RepeatJudgement, Withdrawals
from realcli.scoring.sources import Source
from realcli.storage.local import LocalStore
from realcli_cli.recount.digests import digest
from realcli_cli.recount.origins import folder_of, origins, verdict_findings
from realcli_cli.recount.rounds import Round, key_of, numbered, round_of

Json = Any
CONTROLLED = frozenset({"VerifierTimeout", "NoReward", "AgentBrokeEnvironment"})
"""Ends that count because the control passed."""


@dataclass
class Seen:
    """One scenario in one run."""

    verdicts: list[str] = field(default_factory=list)
    contaminated: bool = False
    reason: str | None = None
    unknown: bool = False  # nobody can tell whether it happened


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
    damaged: bool = False  # its evidence is not what was sealed
    source: Source | None = None  # where its run was made, if another sweep made it
    withdrawn: bool = False  # its task is left out, whatever became of it

    @property
    def judged(self) -> bool:
        """Its group is."""
        return self.member is not None

    @property
    def valid(self) -> bool:
        """It counts."""
        return self.judged and self.member["phase"] == "Sealed"

    @property
    def missing(self) -> bool:
        """Its group should be judged and is not."""
        return not self.judged and not self.withdrawn

    @property
    def faulty(self) -> bool:
        """It speaks against its task's tests: no verdict, and no control that passed."""
        return self.judged and self.member["reason"] == "VerifierFault" and self.control.get("result") != "Passed"

    @property
    def control(self) -> Json:
        """The control that decided; {} without one."""
        return (self.member or {}).get("control") or {}

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
    groups: list[Json]  # the judged ones
    objects: dict[str, str]  # key in storage -> digest
    wrong: list[str]
    withdrawn: list[Json] = field(default_factory=list)  # tasks that are left out
    round: Round = field(default_factory=Round)  # which records the report was made of
    notes: list[str] = field(default_factory=list)  # what is not wrong, and rests on less than evidence

    @cached_property
    def collab(self) -> dict[str, list[Counted]]:
        """Valid COLLAB runs by configuration."""
        found: dict[str, list[Counted]] = {configuration["name"]: [] for configuration in self.lock["configurations"]}
        for trial in self.trials:
            if trial.valid and trial.mode == "COLLAB":
                found[trial.configuration].append(trial)
        return found


def read_sweep(root: Path, summary: Json) -> Evidence:
    """Everything below a sweep's folder that the summary rests on."""
    raw = (root / "sweep.json").read_bytes()
    lock = json.loads(raw)
    wrong = [] if digest(raw) == summary["lockDigest"] else [f"sweep.json has the digest {digest(raw)}, the report names another"]
    tasks, names = sorted(t["name"] for t in lock["tasks"]), sorted(c["name"] for c in lock["configurations"])
    cells = itertools.product(tasks, range(1, lock["repeats"] + 1), names, sorted(lock["modes"]))
    trials = [Counted(ordinal, c, t, m, r) for ordinal, (t, r, c, m) in enumerate(cells)]
    found = Evidence(root, lock, trials, [], [], {}, wrong, round=round_of(root, lock, summary))
    judge = summary["judge"]["digest"]
    gone = _withdrawn(found, root / "judgements" / judge[7:15], summary.get("withdrawn") or [])
    for number, (configuration, task) in enumerate(itertools.product(names, tasks)):
        if "source" in lock:
            own = [t.ordinal for t in trials if (t.configuration, t.task) == (configuration, task)]
            for ordinal, source in origins(root, lock["source"], number, own, found.wrong).items():
                trials[ordinal].source = source
        if task in gone:
            for trial in trials:
                trial.withdrawn = trial.withdrawn or trial.task == task
            continue
        _group(found, root / "judgements" / judge[7:15] / configuration / task, judge, configuration, task)
    return found


def _withdrawn(found: Evidence, folder: Path, told: Json) -> set[str]:
    """Names of the tasks that the report leaves out. What it says of them is what was written down, and their controls failed."""
    if not told:
        return set()
    for path in sorted(folder.glob("withdrawn-*.json")):
        record = json.loads(path.read_bytes())
        if record.get("tasks") == told and path.stem == f"withdrawn-{digest(path.read_bytes())[7:15]}":
            break
    else:
        found.wrong.append("/withdrawn: no withdrawn-<digest>.json beside the judgements says so")
        return set()
    record = _load(found, path, Withdrawals) or {"tasks": []}
    lock = digest((found.root / "sweep.json").read_bytes())
    if (record.get("sweepUid"), record.get("lockDigest")) != (found.lock["sweep"]["uid"], lock):
        found.wrong.append(f"{path.name} is of another sweep")
    for one in record["tasks"]:
        _control(found, f"withdrawn task {one['task']}", one["task"], one.get("control"), "Failed")
    found.withdrawn = record["tasks"]
    return {one["task"] for one in record["tasks"]}


def _control(found: Evidence, who: str, task: str, said: Json, wanted: str, made: Source | None = None) -> None:
    """The seal of a control, if it left one: of that task, and with that result. `made`: by the sweep that verified that run."""
    if not said or said["result"] != wanted:
        found.wrong.append(f"{who}: its control is {said['result'] if said else 'not named'}, expected {wanted}")
        return
    root = found.root if made is None else folder_of(found.root, made.verified.partition("/trials/")[0])
    attempt = root / "trials" / f"{said['ordinal']:05d}" / f"attempt-{said['attempt']}"
    if "seal" not in said:
        left = sorted(path.relative_to(root).as_posix() for path in attempt.glob("control-*/seal.json"))
        if wanted == "Passed" or left:
            there = f"although {', '.join(left)} lies there" if left else "and none passes without"
            found.wrong.append(f"{who}: its control names no seal, {there}")
        else:
            why = said.get("detail") or "nothing is told of why"
            found.notes.append(f"{who}: no control of it left a seal ({why}); that it failed is the operator's word alone")
        return
    path = attempt / f"control-{said['number']}" / "seal.json"
    data = path.read_bytes() if path.is_file() else b""
    if digest(data) != said["seal"]:
        found.wrong.append(f"{who}: {path.relative_to(root)} is not the seal {said['seal']}")
        return
    seal = ControlSeal.model_validate_json(data)
    if not seal.intact() or seal.trial.task != task or seal.passed != (wanted == "Passed"):
        found.wrong.append(f"{who}: {path.relative_to(root)} is of another task, or has another result than {wanted}")


def _load(found: Evidence, path: Path, form: type[Frozen]) -> Json:
    """A record as plain JSON; None, and a line in `wrong`, where it is gone or no record of its kind.

    The model holds its form alone: values are read from the JSON.
    """
    name = path.relative_to(found.root)
    if not path.is_file():
        found.wrong.append(f"{name} does not exist")
        return None
    data = path.read_bytes()
    found.objects[key_of(found.lock, path.relative_to(found.root).as_posix())] = digest(data)
    try:
        form.model_validate_json(data)
    except ValidationError as error:
        found.wrong.append(f"{name} is no {form.__name__} of this version: {first_fault(error)}")
        return None
    return json.loads(data)


def _named(found: Evidence, folder: Path, name: str | None, form: type[Frozen]) -> Json:
    """A record a group file names: it lies in the group's own folder."""
    if name is None:
        return None
    if Path(name).name != name:
        found.wrong.append(f"{folder.relative_to(found.root)}: the group names {name!r}, which is no file of its folder")
        return None
    return _load(found, folder / name, form)


def _group(found: Evidence, folder: Path, judge: str, configuration: str, task: str) -> None:
    numbers = [n for n in numbered(folder) if found.round.most is None or n <= found.round.most]
    if not numbers:
        return
    where, last = folder.relative_to(found.root), numbers[-1]
    group = _load(found, folder / f"group-{last}.json", Group)
    if group is None:
        return
    found.groups.append(group)
    expected = {
        "judge": judge, "configuration": configuration, "task": task, "n": last,
        "sweepUid": found.lock["sweep"]["uid"], "lockDigest": digest((found.root / "sweep.json").read_bytes()),
    }  # fmt: skip
    for key, value in expected.items():
        if group[key] != value:
            found.wrong.append(f"{where}/group-{last}.json: its {key} is {group[key]}, expected {value}")
    found.costs += [group["cost"]] if "cost" in group else []
    labels = _named(found, folder, group.get("failures"), Failures)
    if labels and (labels["judge"], labels["configuration"], labels["task"], labels["n"]) != (
        group["judge"], configuration, task, group["n"]):  # fmt: skip
        found.wrong.append(f"{where}/{group['failures']}: it labels another group or is by another judge")
    by_ordinal = {item["ordinal"]: item for item in labels["failures"]} if labels else {}
    cells = {t.ordinal: (t.mode, t.repeat) for t in found.trials if (t.configuration, t.task) == (configuration, task)}
    listed = [member["ordinal"] for member in group["members"]]
    if sorted(listed) != sorted(cells):
        found.wrong.append(f"{where}: the group is of trials {sorted(listed)}, the plan gives it {sorted(cells)}")
    for member in group["members"]:
        if cells.get(member["ordinal"]) != (member["mode"], member["repeat"]):
            found.wrong.append(f"trial {member['ordinal']} of {configuration}, {task} is another cell of the plan")
            continue
        trial = found.trials[member["ordinal"]]
        trial.member, trial.failure = member, by_ordinal.get(member["ordinal"])
        trial.facts = group.get("facts", {}).get(str(member["ordinal"]))
        if member["reason"] in CONTROLLED or trial.control:
            wanted = "Passed" if trial.valid else trial.control.get("result", "Failed")
            made = trial.source if trial.source is not None and not _verified_again(found) else None
            _control(found, f"trial {trial.ordinal}", task, trial.control, wanted, made)
        if trial.valid:
            _seals(found, trial)
            if trial.mode == "COLLAB":
                _verdicts(found, trial, folder, group)


def _verified_again(found: Evidence) -> bool:
    """Whether the tests ran for this sweep on states that another had sealed."""
    return "Verify" in found.lock.get("source", {}).get("phases", [])


def _seals(found: Evidence, trial: Counted) -> None:
    member = trial.member
    said = Fraction(member["reward"]) if "reward" in member else None
    if "workSeal" not in member:
        trial.reward = said
        if said:
            trial.damaged = True
            found.wrong.append(f"trial {trial.ordinal} has the reward {said} and no seal")
        return
    own = found.root / "trials" / f"{trial.ordinal:05d}" / f"attempt-{member['attempt']}"
    if "source" in found.lock and trial.source is None:  # which is told
        trial.reward, trial.damaged = said, True
        return
    attempt = own if trial.source is None else folder_of(found.root, trial.source.attempt)
    verifies = own if trial.source is None or _verified_again(found) else folder_of(found.root, trial.source.verified)
    beside = verifies == attempt
    try:
        anchor = member.get("seal") if beside else None
        report = verify_attempt(StoreReader(LocalStore(attempt), ""), "", member["workSeal"], anchor)
        findings = list(map(str, report.findings))
        if not beside and "verifyAttempt" in member:
            findings += verdict_findings(verifies / f"verify-{member['verifyAttempt']}", member.get("seal"), member["workSeal"])
    except (FileTooLong, OSError) as error:
        findings = [str(error)]
    found.wrong += [f"trial {trial.ordinal}: {finding}" for finding in findings]
    if findings:
        trial.reward, trial.damaged = said, True
        return
    trial.seal = json.loads((attempt / "work-seal.json").read_bytes())
    if "verifyAttempt" in member:
        seal = json.loads((verifies / f"verify-{member['verifyAttempt']}" / "seal.json").read_bytes())
        trial.reward, trial.checks = Fraction(seal["reward"]), seal.get("checks")
        if digest((verifies / f"verify-{member['verifyAttempt']}" / "seal.json").read_bytes()) != member.get("seal"):
            number = member["verifyAttempt"]
            found.wrong.append(f"trial {trial.ordinal}: verify-{number} is not the verify its group was judged by")
        if said != trial.reward:
            trial.damaged = True
            found.wrong.append(f"trial {trial.ordinal}: its group says reward {said}, its verify seal {trial.reward}")
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
        trial.scenarios = {name: Seen(["unscored"], unknown=True) for name in task.get("scenarios", [])}
        return
    name = group["judgements"].get(str(trial.repeat))
    if name is None:
        where = folder.relative_to(found.root)
        found.wrong.append(f"trial {trial.ordinal}: the group in {where} names no judgement of it, although it is sealed")
        return
    judgement = _named(found, folder, name, RepeatJudgement)
    if judgement is None:
        return
    trial.audit = _named(found, folder, group.get("audits", {}).get(str(trial.repeat)), AuditRecord)
    for what, record in (("judgement", judgement), ("audit", trial.audit)):
        if record and (record["ordinal"], record["attempt"], record["workSeal"], record["judge"]) != (
            trial.ordinal, trial.member["attempt"], trial.member["workSeal"], group["judge"]):  # fmt: skip
            found.wrong.append(f"trial {trial.ordinal}: its {what} is of another run or judge")
    spoilt = trial.audit.get("contaminated", {}) if trial.audit else {}
    trial.instances = [_instance(item, spoilt) for item in judgement["instances"]]
    trial.generic = [_instance(item, spoilt) for item in judgement.get("generic", [])]
    for item in trial.instances:
        seen = trial.scenarios.setdefault(item["scenario"], Seen())
        known = bool(seen.verdicts) and not seen.unknown
        seen.unknown = not known and not item.get("checks") and (seen.unknown or bool(item["verdicts"]))
        seen.verdicts += item["verdicts"]
        seen.contaminated = seen.contaminated or item["why"] is not None
        seen.reason = seen.reason or item["why"] or item.get("reason")


def _instance(item: Json, spoilt: Json) -> Json:
    verdicts = [check["verdict"] for check in item.get("checks", [])]
    if not verdicts and item["state"] == "unscored":
        verdicts = ["unscored"]
    why = spoilt.get(item["probe"]) or (item.get("reason", "the instrument") if item["state"] == "contaminated" else None)
    return {**item, "verdicts": verdicts, "why": why}
