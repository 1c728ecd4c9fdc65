"""Every number of summary.json as it should be: JSON pointer -> value, from evidence that was read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from realcli.audit.model import AuditRecord
from realcli.scoring.analyses.every import judged_tables, tables_of
from realcli.scoring.analyses.table import Table
from realcli.scoring.document import ScoreInput
from realcli.scoring.intervals import interval, resample
from realcli.scoring.ranks import pairwise, rank_stability, relation_interval
from realcli.scoring.records import Failure, InstanceRecord
from realcli_cli.recount.evidence import Counted, Evidence, Seen
from realcli_cli.recount.formulas import Scores, Tree, climb, headline, mean, pairs, passes, rate, scores

Json = Any
Expected = Iterator[tuple[str, Any]]
RETENTION = "constraint-retention"
CONTROL_NUMBERS = ("ordinal", "attempt", "number")


class Recount:
    """The evidence, grouped, with the summary it is held against (for the order of its lists alone)."""

    def __init__(self, found: Evidence, summary: Json, tree: Tree, given: ScoreInput, check_evidence: Mapping[str, str]) -> None:
        self._found, self._summary, self._tree, self._given = found, summary, tree, given
        self._evidence = check_evidence
        self._by_configuration: dict[str, list[Counted]] = {}
        self._by_task: dict[str, list[Counted]] = {}
        self._by_cell: dict[tuple[str, str, str], list[Counted]] = {}
        for trial in found.trials:
            self._by_configuration.setdefault(trial.configuration, []).append(trial)
            self._by_task.setdefault(trial.task, []).append(trial)
            self._by_cell.setdefault((trial.configuration, trial.task, trial.mode), []).append(trial)
        self._shared: set[tuple[str, int, str]] | None = None
        self.tables: list[Table] = []  # all analyses, once `everything` went through

    def everything(self) -> Expected:
        """All numbers."""
        trials, summary = self._found.trials, self._summary
        yield "/repeats", self._found.lock["repeats"]
        yield "/catalogueScenarios", sum(len(names) for subs in self._tree.values() for names in subs.values())
        yield "/counts/trials", len(trials)
        yield "/counts/valid", sum(t.valid for t in trials)
        yield "/counts/invalid", sum(t.judged and not t.valid for t in trials)
        yield "/counts/missing", sum(t.missing for t in trials)
        yield "/counts/withdrawn", sum(t.withdrawn for t in trials)
        yield "/counts/tasksWithdrawn", len({t.task for t in trials if t.withdrawn})
        yield "/counts/groupsWithdrawn", len({(t.configuration, t.task) for t in trials if t.withdrawn})
        yield "/counts/groupsJudged", len(self._found.groups)
        yield "/counts/groupsIncomplete", len({(t.configuration, t.task) for t in trials if t.judged and not t.valid})
        for at, one in enumerate(self._found.withdrawn):
            yield f"/withdrawn/{at}/more", one.get("more", 0)
            yield from ((f"/withdrawn/{at}/control/{key}", (one.get("control") or {}).get(key)) for key in CONTROL_NUMBERS)
        yield "/counts/groups", len(self._found.lock["tasks"]) * len(self._found.lock["configurations"])
        for at, trial in enumerate(trials):
            yield from self._trial(f"/trials/{at}", trial)
        for at, one in enumerate(summary["outcomes"]):
            yield f"/outcomes/{at}/here", sum(t.judged and t.member["reason"] == one["reason"] for t in trials)
        for at, one in enumerate(summary["configurations"]):
            yield from self._configuration(f"/configurations/{at}", one["name"])
        for at, one in enumerate(self._found.lock["configurations"]):
            yield f"/configurations/{at}/setup/files", one.get("setup", {}).get("files")
        for at, one in enumerate(summary["tasks"]):
            yield from self._cell(f"/tasks/{at}", self._by_cell.get((one["configuration"], one["task"], one["mode"]), []))
        for at, one in enumerate(summary["taskList"]):
            yield from self._task(f"/taskList/{at}", self._by_task.get(one["name"], []))
        yield from self._scenarios()
        yield from self._panels()
        yield from self._judge()
        yield from self._readings()

    def _of(self, configuration: str) -> list[Counted]:
        return self._by_configuration.get(configuration, [])

    def _trial(self, at: str, t: Counted) -> Expected:
        yield f"{at}/ordinal", t.ordinal
        yield f"{at}/repeat", t.repeat
        if not t.judged:
            return
        yield f"{at}/attempt", t.member["attempt"]
        yield f"{at}/invalidAttempts", t.member.get("invalidAttempts", 0)
        yield from ((f"{at}/control/{key}", t.control.get(key)) for key in CONTROL_NUMBERS)
        if t.valid:
            yield f"{at}/success", t.success
            yield f"{at}/reward", None if t.reward is None else Number(t.reward)
        for name in ("passed", "total"):
            yield f"{at}/checks/{name}", (t.checks or {}).get(name)
        yield f"{at}/turns", (t.seal or {}).get("turns")
        for name, value in (t.seal or {}).get("tokens", {}).items():
            yield f"{at}/tokens/{name}", value
        for name, value in (t.facts or {}).items():
            if not isinstance(value, dict):
                yield f"{at}/facts/{name}", value
            else:
                yield from ((f"{at}/facts/{name}/{key}", one) for key, one in value.items())

    def _configuration(self, at: str, name: str) -> Expected:
        own = self._of(name)
        judged = [t for t in own if t.judged]
        repeats = sorted({t.repeat for t in judged})
        parts = [scores([t for t in judged if t.repeat == r], self._tree) for r in repeats]
        for mode, key in (("EXEC", "exec"), ("COLLAB", "collab")):
            runs = [t for t in own if t.mode == mode]
            if not runs:
                continue
            yield f"{at}/{key}/r", mean(getattr(p, f"r_{key}") for p in parts)
            yield f"{at}/{key}/valid", sum(t.valid for t in runs)
            invalid = sum(t.judged and not t.valid for t in runs)
            yield f"{at}/{key}/invalid", invalid
            yield f"{at}/{key}/missing", sum(t.missing for t in runs)
            for read in (0, 1) if invalid else ():
                by_repeat = ([t for t in judged if t.repeat == r] for r in repeats)
                yield f"{at}/{key}/bounds/invalidAs{read}", mean(rate(group, mode, read) for group in by_repeat)
            yield from self._spent(f"{at}/spent/{mode}", runs)
        means = {
            key: mean(getattr(p, key) for p in parts)
            for key in ("r_exec", "r_collab", "s", "s_rate", "s_low", "s_high", "j", "j_rate")
        }
        for key, field in (
            ("s", "s"),
            ("s_rate", "sRate"),
            ("s_low", "sLow"),
            ("s_high", "sHigh"),
            ("j", "j"),
            ("j_rate", "jRate"),
        ):
            yield f"{at}/{field}", means[key]
        yield f"{at}/deltaR", _minus(means["r_collab"], means["r_exec"])
        yield f"{at}/deltaJ", _minus(means["j"], means["r_exec"])
        if None not in (means["j"], means["r_exec"], means["s"]):
            yield f"{at}/deltaJTask", means["j"] - means["r_exec"] * means["s"]  # type: ignore[operator]
            yield f"{at}/deltaJCollaboration", -means["r_exec"] * (1 - means["s"])  # type: ignore[operator]
        yield f"{at}/headline", headline(parts)
        whole = bool(parts) and all(p.whole for p in parts)
        yield f"{at}/sPartial", not whole
        yield f"{at}/partial", not whole or any(None in (p.r_exec, p.r_collab, p.s, p.j) for p in parts)
        for field, key in (("dimensions", "dimensions"), ("subDimensions", "sub_dimensions")):
            for one in dict.fromkeys(k for p in parts for k in getattr(p, key)):
                yield f"{at}/{field}/{one}", mean(getattr(p, key).get(one) for p in parts)
        for number, (repeat, part) in enumerate(zip(repeats, parts, strict=True)):
            yield from self._repeat(f"{at}/perRepeat/{number}", repeat, part)
        both = pairs(own)
        up, down = sum(not e.success and c.success for e, c in both), sum(e.success and not c.success for e, c in both)
        yield f"{at}/paired/pairs", len(both)
        yield f"{at}/paired/failToPass", up
        yield f"{at}/paired/passToFail", down
        yield f"{at}/paired/deltaR", Fraction(up - down, len(both)) if both else None
        yield from ((f"{at}/instances/{key}", n) for key, n in _instances(own).items())
        yield f"{at}/invalidAttempts", sum(t.member.get("invalidAttempts", 0) for t in judged)
        for key in ("input", "cacheRead", "cacheWrite", "output"):
            yield f"{at}/tokens/{key}", sum((t.seal or {}).get("tokens", {}).get(key, 0) for t in own)
        common = self._common()
        n, rates = 0, []
        for r in repeats:
            kept = [_only(t, common) for t in own if t.valid and t.mode == "COLLAB" and t.repeat == r]
            n += sum(len(t.scenarios) for t in kept)
            rates.append(climb(kept, self._tree, threshold=False)[0])
        yield f"{at}/commonSRate", mean(rates)
        yield f"{at}/commonInstances", n if judged else None
        yield from self._beside(at, [t for t in judged if t.mode == "COLLAB"], repeats)

    def _beside(self, at: str, runs: Sequence[Counted], repeats: Sequence[int]) -> Expected:
        """Coverage; S with what the user spoilt; R without the runs whose outcome it may have changed."""
        yield f"{at}/observed", len({q for t in runs if t.valid for q, seen in t.scenarios.items() if passes(seen) is not None})
        if any(seen.contaminated for t in runs if t.valid for seen in t.scenarios.values()):
            left_in = [_uncleaned(t) for t in runs]
            rates = (climb([t for t in left_in if t.repeat == r], self._tree, threshold=False)[0] for r in repeats)
            yield f"{at}/sRateUncleaned", mean(rates)
        sound = [t for t in runs if not (t.audit and "outcomeFlag" in t.audit)]
        if len(sound) < len(runs):
            yield f"{at}/rCollabUnflagged", mean(rate([t for t in sound if t.repeat == r], "COLLAB") for r in repeats)

    def _repeat(self, at: str, repeat: int, part: Scores) -> Expected:
        yield f"{at}/repeat", repeat
        for key, field in (("r_exec", "rExec"), ("r_collab", "rCollab"), ("s", "s"), ("s_rate", "sRate"), ("s_low", "sLow"),
                           ("s_high", "sHigh"), ("j", "j"), ("j_rate", "jRate")):  # fmt: skip
            yield f"{at}/{field}", getattr(part, key)

    def _common(self) -> set[tuple[str, int, str]]:
        """Instances triggered in every configuration."""
        if self._shared is not None:
            return self._shared
        sets = []
        for name in dict.fromkeys(t.configuration for t in self._found.trials if t.judged):
            sets.append({
                (t.task, t.repeat, q) for t in self._of(name) if t.valid and t.mode == "COLLAB"
                for q, seen in t.scenarios.items() if seen.verdicts and not seen.contaminated and not seen.unknown
            })  # fmt: skip
        self._shared = set.intersection(*sets) if sets else set()
        return self._shared

    def _spent(self, at: str, runs: Sequence[Counted]) -> Expected:
        ran = [t for t in runs if t.valid and t.seal is not None]
        costs = [Decimal(t.facts["costUsd"]) for t in ran if t.facts and "costUsd" in t.facts]
        tokens = [t.seal["tokens"] for t in ran if "tokens" in t.seal]
        seconds = [Fraction(t.seal["workingSeconds"]) for t in ran if "workingSeconds" in t.seal]
        yield f"{at}/usd/usd", Number(Fraction(sum(costs))) if costs else None
        yield f"{at}/priced", len(costs)
        yield f"{at}/of", len(ran)
        calls = [t.facts["toolCalls"] for t in ran if t.facts and "toolCalls" in t.facts]
        yield f"{at}/turns", sum(t.seal["turns"] for t in ran) if ran else None
        yield f"{at}/toolCalls", sum(calls) if calls else None
        yield (
            f"{at}/inputTokens",
            sum(t.get(k, 0) for t in tokens for k in ("input", "cacheRead", "cacheWrite")) if tokens else None,
        )
        yield f"{at}/outputTokens", sum(t.get("output", 0) for t in tokens) if tokens else None
        yield f"{at}/hours", sum(seconds, Fraction(0)) / 3600 if seconds else None
        if costs:
            yield f"{at}/usdPerRun/usd", Number(round(Fraction(sum(costs)) / len(costs), 6))

    def _cell(self, at: str, own: Sequence[Counted]) -> Expected:
        valid = [t for t in own if t.valid]
        yield f"{at}/successes", sum(t.success for t in valid)
        yield f"{at}/valid", len(valid)
        yield f"{at}/invalid", sum(t.judged and not t.valid for t in own)
        yield f"{at}/missing", sum(t.missing for t in own)
        known = [(t.repeat, t.reward) for t in valid if t.reward is not None]
        yield f"{at}/meanReward", mean(reward for _, reward in known)
        yield from ((f"{at}/rewards/{repeat}", Number(reward)) for repeat, reward in known)

    def _task(self, at: str, own: Sequence[Counted]) -> Expected:
        both = pairs(own)
        for mode, key in (("EXEC", "rExec"), ("COLLAB", "rCollab")):
            yield f"{at}/{key}", mean(int(t.success) for t in own if t.valid and t.mode == mode)
        yield f"{at}/pairs", len(both)
        yield f"{at}/failToPass", sum(not e.success and c.success for e, c in both)
        yield f"{at}/passToFail", sum(e.success and not c.success for e, c in both)
        faults = [t.ordinal for t in own if t.faulty]
        yield from ((f"{at}/suspectTrials/{n}", ordinal) for n, ordinal in enumerate(faults))

    def _scenarios(self) -> Expected:
        for number, one in enumerate(self._summary["scenarios"]):
            at, own = f"/scenarios/{number}", self._of(one["configuration"])
            seen = [
                t.scenarios[one["scenario"]] for t in own if t.valid and t.mode == "COLLAB" and one["scenario"] in t.scenarios
            ]
            clean = [s for s in seen if not s.contaminated]
            happened = [s for s in clean if s.verdicts and not s.unknown]
            unknown = sum(s.unknown for s in clean)
            ys = [passes(s) for s in happened]
            unscored = sum("unscored" in s.verdicts and "0" not in s.verdicts for s in happened)
            n = sum(y is not None for y in ys)
            yield f"{at}/passes", ys.count(1)
            yield f"{at}/n", n
            yield f"{at}/rate", Fraction(ys.count(1), n) if n else None
            yield f"{at}/scheduled", len(seen)
            yield f"{at}/triggered", len(happened)
            yield f"{at}/triggerRate", Fraction(len(happened), len(clean) - unknown) if len(clean) > unknown else None
            yield f"{at}/unscored", unscored + unknown
            yield f"{at}/unknown", unknown
            yield f"{at}/notApplicable", len(happened) - n - unscored
            yield f"{at}/contaminated", len(seen) - len(clean)
            for reason, count in Counter(s.reason or "unknown" for s in clean if not s.verdicts).items():
                yield f"{at}/untriggered/{reason.replace('~', '~0').replace('/', '~1')}", count

    def _panels(self) -> Expected:
        for number, one in enumerate(self._summary["audits"]):
            at, runs = f"/audits/{number}", [t for t in self._of(one["configuration"]) if t.valid and t.mode == "COLLAB"]
            audits = [t.audit for t in runs if t.audit]
            yield f"{at}/audited", len(audits)
            yield f"{at}/runs", len(runs)
            for place, check in enumerate(one["checks"]):
                said = Counter(c["verdict"] for a in audits for c in a["checks"] if c["check"] == check["check"])
                counted = said["1"] + said["0"]
                yield f"{at}/checks/{place}/passes", said["1"]
                yield f"{at}/checks/{place}/fails", said["0"]
                yield f"{at}/checks/{place}/notApplicable", said["n/a"]
                yield f"{at}/checks/{place}/unscored", said["unscored"]
                yield f"{at}/checks/{place}/rate", Fraction(said["1"], counted) if counted else None
            for d in one["instances"]:
                items = [i for t in runs for i in t.instances if i["dimension"] == d]
                yield f"{at}/contaminated/{d}", sum(i["why"] is not None for i in items)
                yield f"{at}/instances/{d}", sum(bool(i.get("checks")) or i["why"] is not None for i in items)
            flagged = [t.ordinal for t in runs if t.audit and "outcomeFlag" in t.audit]
            yield from ((f"{at}/outcomeFlagged/{n}", ordinal) for n, ordinal in enumerate(flagged))
            yield f"{at}/askUnmatched", sum(a.get("askUnmatched", 0) for a in audits) if audits else None
            yield f"{at}/unscriptedAnswers", sum(a.get("unscriptedAnswers", 0) for a in audits) if audits else None
        for number, one in enumerate(self._summary["generic"]):
            items = [i for t in self._of(one["configuration"]) if t.valid for i in t.generic if i["scenario"] == one["scenario"]]
            verdicts = [[v for v in i["verdicts"] if v != "n/a"] for i in items if i["why"] is None]
            fails = sum("0" in v for v in verdicts)
            unscored = sum("unscored" in v and "0" not in v for v in verdicts)
            good = sum(bool(v) and set(v) == {"1"} for v in verdicts)
            yield f"/generic/{number}/passes", good
            yield f"/generic/{number}/n", good + fails
            yield f"/generic/{number}/rate", Fraction(good, good + fails) if good + fails else None
            yield f"/generic/{number}/unscored", unscored
        for number, one in enumerate(self._summary["failures"]):
            own = [t for t in self._of(one["configuration"]) if t.mode == one["mode"] and t.failure is not None]
            yield f"/failures/{number}/runs", sum(t.failure.get("label") == one.get("label") for t in own)

    def _judge(self) -> Expected:
        checks = [c for t in self._found.trials if t.valid for i in (*t.instances, *t.generic) for c in i.get("checks", [])]
        settled = [c for c in checks if c["verdict"] != "unscored"]
        yield "/judge/verdicts", len(settled)
        yield "/judge/byProgram", sum(c["by"] == "program" for c in settled)
        yield "/judge/byJudge", sum(c["by"] == "judge" for c in settled)
        yield "/judge/trusted", sum(c["by"] == "judge" and c.get("trusted", False) for c in settled)
        yield "/judge/conflicts", sum(c.get("conflict", False) for c in checks)
        yield "/judge/unscored", len(checks) - len(settled)
        costs = self._found.costs
        usd = [Decimal(c["costUsd"]) for c in costs if "costUsd" in c]
        yield "/judge/cost/requests", sum(c.get("requests", 0) for c in costs)
        yield "/judge/usd/usd", Number(Fraction(sum(usd))) if usd else None
        yield "/judge/cost/costUsd", Number(Fraction(sum(usd))) if usd else None
        for key in ("input", "cacheRead", "cacheWrite", "output") if any("tokens" in c for c in costs) else ():
            yield f"/judge/cost/tokens/{key}", sum(c.get("tokens", {}).get(key, 0) for c in costs)

    def _readings(self) -> Expected:
        """Intervals and tables: scoring's own functions, over runs that were read here."""
        drawn = resample(self._given)
        fields = {
            "exec/r": "R_exec", "collab/r": "R_collab", "s": "S", "sRate": "S_rate", "j": "J", "jRate": "J_rate",
            "deltaR": "dR", "deltaJ": "dJ", "paired/deltaR": "dR_paired",
        }  # fmt: skip
        for at, one in enumerate(self._summary["configurations"]):
            if one["name"] not in drawn:
                continue
            draws = drawn[one["name"]]
            found = {field: draws.scores[measure] for field, measure in fields.items()}
            found |= {f"dimensions/{d}": values for d, values in draws.dimensions.items()}
            for field, values in found.items():
                ends = interval(values)
                if ends is not None:
                    yield f"/configurations/{at}/{field}/interval/low", round(ends.low, 4) + 0.0
                    yield f"/configurations/{at}/{field}/interval/high", round(ends.high, 4) + 0.0
        names = self._given.names
        runs = {name: [t for t in self._of(name) if t.valid] for name in names}
        instances = {
            n: [_record(i) for t in own for i in t.instances if i["subDimension"] == RETENTION] for n, own in runs.items()
        }
        labels = {n: [Failure.model_validate(t.failure) for t in own if t.failure] for n, own in runs.items()}
        audits = {n: [AuditRecord.model_validate(t.audit) for t in own if t.audit] for n, own in runs.items()}
        tables = [*tables_of(self._given), *judged_tables(self._given, instances, self._evidence, labels, audits)]
        if len(names) > 1:
            tables += [make(drawn, m) for m in ("S_rate", "R_collab") for make in (rank_stability, pairwise)]
            tables.append(relation_interval(drawn))
        self.tables = tables
        by_name = {table.name: table for table in tables}
        for at, one in enumerate(self._summary["analyses"]):
            for r, row in enumerate(by_name[one["id"]].rows if one["id"] in by_name else ()):
                yield from ((f"/analyses/{at}/rows/{r}/{c}", cell) for c, cell in enumerate(row))


class Number(Fraction):
    """A decimal that stands in the file as text."""


def _minus(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or right is None else left - right


def _only(trial: Counted, common: set[tuple[str, int, str]]) -> Counted:
    kept = {q: seen for q, seen in trial.scenarios.items() if (trial.task, trial.repeat, q) in common}
    return Counted(trial.ordinal, trial.configuration, trial.task, trial.mode, trial.repeat, trial.member, trial.reward, kept)


def _uncleaned(trial: Counted) -> Counted:
    seen = {q: Seen(list(one.verdicts), unknown=one.unknown) for q, one in trial.scenarios.items()}
    return Counted(trial.ordinal, trial.configuration, trial.task, trial.mode, trial.repeat, trial.member, trial.reward, seen)


def _instances(own: Sequence[Counted]) -> dict[str, int]:
    counts = dict.fromkeys(("triggered", "untriggered", "notApplicable", "unscored", "contaminated"), 0)
    for t in own:
        for seen in t.scenarios.values() if t.valid and t.mode == "COLLAB" else ():
            applicable = [v for v in seen.verdicts if v != "n/a"]
            if seen.contaminated:
                counts["contaminated"] += 1
            elif not seen.verdicts:
                counts["untriggered"] += 1
            elif not applicable:
                counts["notApplicable"] += 1
            else:
                counts["unscored" if "unscored" in applicable and "0" not in applicable else "triggered"] += 1
    return counts


def _record(item: Json) -> InstanceRecord:
    state = "contaminated" if item["why"] is not None else item["state"]
    return InstanceRecord.model_validate({k: v for k, v in item.items() if k not in ("verdicts", "why")} | {"state": state})
