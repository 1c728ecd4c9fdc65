"""The rules of the scenario catalogue: each entry against the vocabulary, each word against what the program knows.

They make a wrong denominator impossible to write: a trigger better exposed than it is, a window that can be empty, a hard check
that decides on what a model read, a need that is not declared. A fault names its rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from realcli.benchmark.catalogue_models import Catalogue, CheckTemplate, Scenario, Template
from realcli.benchmark.needs import needs_of
from realcli.trajectory.anchors import RULES, WINDOWS
from realcli.trajectory.bindings import names_in, substitute
from realcli.trajectory.exposure import exposure_of, worse
from realcli.trajectory.matching import VOCABULARY_EVENTS, parse_pattern
from realcli.trajectory.patterns import PatternError
from realcli.trajectory.triggers import Count, Nth, TriggerError, When, atoms, markers_as_written, parse_when

CLAIMS = frozenset(("final_claim", "interim_claim"))
ENDS = frozenset(("episode_start", "episode_end"))
USER_SIDE = frozenset(("slice_released", "user_message"))
_NUMBERS = frozenset(("nth", "at_least", "exit", "slices_pending", "n", "min_words"))
SNAPSHOT_OPERATORS = frozenset(
    (
        "script", "text_in_file", "text_not_in_file", "pkg_absent", "archive_lacks_bytes", "git_reachable", "patch_present",
        "claims_vs_oracles", "path_absent",
    )
)  # fmt: skip
"""Operators that look at one state and have to say at which."""


class Fault(NamedTuple):
    """What is wrong with an entry, and the rule that says so."""

    rule: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} [{self.rule}]"


def faults(catalogue: Catalogue) -> Iterator[Fault]:
    """Every fault of a catalogue."""
    yield from _vocabulary(catalogue)
    for entry in (*catalogue.templates.values(), *catalogue.generic.values()):
        yield from _trigger(entry)
        yield from _anchor(entry)
        yield from _needs(entry, catalogue)
        yield from _names(entry)
        ids = [check.id for check in entry.checks]
        if len(ids) != len(set(ids)):
            yield Fault("check-ids", entry.id, "two checks have the same id")
        for check in entry.checks:
            yield from _check(entry, check, catalogue)
        if isinstance(entry, Template):
            yield from _stimulus(entry, catalogue)


def _vocabulary(catalogue: Catalogue) -> Iterator[Fault]:
    words = catalogue.vocabulary
    for name, found, known in (
        ("events", set(words.events), set(VOCABULARY_EVENTS)),
        ("anchors", set(words.anchors), set(RULES)),
        ("windows", set(words.windows) - {"cut"}, set(WINDOWS)),
    ):
        for word in sorted(found ^ known):
            what = "this program gives it no meaning" if word in found else "the file does not define it"
            yield Fault("vocabulary", f"vocabulary.{name}.{word}", what)
    for name, rules in WINDOWS.items():
        written = words.windows.get(name)
        if isinstance(written, dict) and set(written.get("with", [])) != rules:
            yield Fault("vocabulary", f"vocabulary.windows.{name}", f"goes with {written.get('with')}; expected {sorted(rules)}")
    used = {node.get("op") for entry in _entries(catalogue) for check in entry.checks for node in _nodes(check.hard)}
    for idle in sorted(set(words.hard_ops) - used):
        yield Fault("idle-operator", f"vocabulary.hard_ops.{idle}", "no check uses it")


def _entries(catalogue: Catalogue) -> list[Scenario]:
    return [*catalogue.templates.values(), *catalogue.generic.values()]


# -- triggers -----------------------------------------------------------------------------------------------------------------
def parsed(entry: Scenario) -> When | None:
    """The entry's trigger with stand-ins for its bindings; None if it cannot be read."""
    try:
        return parse_when(_sample(entry.trigger.when), {})
    except TriggerError:
        return None


def _trigger(entry: Scenario) -> Iterator[Fault]:
    trigger, id = entry.trigger, entry.id
    try:
        when = parse_when(_sample(trigger.when), {})
    except TriggerError as error:
        yield Fault("trigger", id, str(error))
    else:
        try:
            best = exposure_of(when)
        except ValueError as error:
            yield Fault("trigger-event", id, str(error))
        else:
            if worse(best, trigger.exposure):
                yield Fault("exposure", id, f"is declared {trigger.exposure}, but its trigger is {best} at best")
        first = next(atoms(when))
        if trigger.delivery == "opener" and not (isinstance(first, Nth) and first.event == "episode_start" and first is when):
            yield Fault("opener", id, "what is part of the opener has the trigger episode_start")
    if (trigger.exposure == "agent") != bool(trigger.neutral_because):
        yield Fault("neutral-because", id, "exposure agent needs `neutral_because`, and no other has it")
    if (trigger.delivery == "observe") != (entry.type == "passive"):
        yield Fault("delivery", id, f"a {entry.type} scenario is not delivered {trigger.delivery}")
    if (trigger.fallback == "before_completion") != bool(trigger.fallback_violator):
        yield Fault("fallback-violator", id, "a fallback says what a violator does on that path, and nothing else does")
    if trigger.fallback != "none" and trigger.delivery != "at_yield":
        yield Fault("fallback", id, "a fallback is delivered at a yield")
    if (trigger.delivery == "mid_turn") != ("agent_working" in trigger.requires):
        yield Fault("mid-turn", id, "delivery mid_turn goes with `requires: [agent_working]`")
    for word in sorted(set(trigger.requires) - {"agent_working"}):
        yield Fault("requires", id, f"requires {word!r}, which is not defined")


def _sample(tree: Any, key: str = "") -> Any:
    """The tree with something of the right kind for every binding."""
    if isinstance(tree, dict):
        tree = markers_as_written(tree) if key == "where" else tree
        return {name: _sample(value, name) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_sample(value, key) for value in tree]
    if not names_in(tree):
        return tree
    stand_in = 1 if key in _NUMBERS else "/x" if key == "path" else "x"
    return substitute(tree, dict.fromkeys(names_in(tree), stand_in))


# -- anchors and windows ------------------------------------------------------------------------------------------------------
def _anchor(entry: Scenario) -> Iterator[Fault]:
    rule, event, id = entry.anchor.get("rule", ""), entry.anchor.get("event", ""), entry.id
    if rule not in RULES:
        yield Fault("anchor-rule", id, f"anchor rule {rule!r}; expected one of {', '.join(RULES)}")
        return
    when = parsed(entry)
    if when is None:
        return  # its own fault
    kinds = {a.pattern.event for a in atoms(when) if isinstance(a, Nth | Count)}
    if entry.type == "probe":
        if (event, rule) != ("probe_delivered", "response_after"):
            yield Fault("anchor-probe", id, "a probe is anchored at its delivery: {event: probe_delivered, rule: response_after}")
    elif event != ("episode_start" if rule == "whole_run" else "trigger"):
        yield Fault("anchor-event", id, f"under {rule} the anchor is not {event!r}")
    elif rule == "response_after" and not (kinds and kinds <= USER_SIDE):
        yield Fault("anchor-empty", id, "response_after needs a delivered message as its trigger")
    elif rule == "rest_of_response" and (not kinds or kinds & (CLAIMS | ENDS | {"yield"})):
        yield Fault("anchor-empty", id, "nothing follows a claim, a yield or an end: rest_of_response would be empty")
    elif rule == "containing_response" and not (kinds and kinds <= CLAIMS):
        yield Fault("anchor-empty", id, "containing_response needs a claim as its trigger")


def _check(entry: Scenario, check: CheckTemplate, catalogue: Catalogue) -> Iterator[Fault]:
    where, rule = f"{entry.id}/{check.id}", entry.anchor.get("rule", "")
    rules = next((rules for name, rules in WINDOWS.items() if name == check.window), None)
    if rules is None or (rule in RULES and rule not in rules):
        what = "is not defined" if rules is None else f"could be empty under {rule}"
        yield Fault("window", where, f"window {check.window!r} {what}")
    if (check.window == "until_approval") != (check.approval_of is not None):
        yield Fault("approval-of", where, "window until_approval goes with `approval_of`")
    if check.approval_of is not None and check.approval_of not in (entry.bindings if isinstance(entry, Template) else {}):
        yield Fault("approval-of", where, f"approval_of {check.approval_of!r} is no binding")
    if check.window == "final" and check.evidence == "trajectory":
        yield Fault("final-evidence", where, "window final looks at a state: its evidence is not the trajectory alone")
    if check.evidence != "trajectory" and not check.hard:
        yield Fault("hard-missing", where, f"evidence {check.evidence} without a hard check")
    if check.hard:
        yield from _hard(check.hard, where, catalogue)


# -- hard checks --------------------------------------------------------------------------------------------------------------
def _hard(hard: dict[str, Any], where: str, catalogue: Catalogue) -> Iterator[Fault]:
    decides = hard.get("decides")
    if decides not in ("both", "fail", "pass", "hint"):
        yield Fault("decides", where, f"decides {decides!r}; expected both, fail, pass or hint")
    for part in _parts(hard):
        yield from _operator(part, where, catalogue)
        if part is not hard and "decides" in part:
            yield Fault("decides", where, "`decides` stands at the top of a hard check")
    looked_for = hard.get({"order": "first", "order_last": "must"}.get(str(hard.get("op")), ""), {})
    if isinstance(looked_for, dict) and looked_for.get("event") == "command" and decides not in ("pass", "hint"):
        yield Fault("pattern-found", where, "a command pattern not found proves nothing: decides pass or hint")
    if decides != "hint":
        soft = sorted(name for name in _events(hard) if name in catalogue.vocabulary.events and
                      catalogue.vocabulary.events[name].read_by_a_model)  # fmt: skip
        if soft:
            yield Fault("model-event", where, f"decides {decides} on what a model read: {', '.join(soft)}")


def _operator(hard: dict[str, Any], where: str, catalogue: Catalogue) -> Iterator[Fault]:
    words = catalogue.vocabulary
    op = hard.get("op")
    if not isinstance(op, str) or op not in words.hard_ops:
        yield Fault("operator", where, f"operator {op!r} is not defined")
        return
    for name in words.hard_ops[op].needs:
        if name not in hard:
            yield Fault("operator-needs", where, f"{op} needs {name}")
    if "window" in hard:
        yield Fault("hard-window", where, "a hard check has the window of its check")
    if op in SNAPSHOT_OPERATORS and "snapshot" not in hard:
        yield Fault("snapshot", where, f"{op} does not say which state it looks at")
    if "snapshot" in hard and hard["snapshot"] not in words.snapshots:
        yield Fault("snapshot", where, f"snapshot {hard['snapshot']!r} is not defined")
    if "baseline" in hard and hard["baseline"] not in ("s0", "anchor"):
        yield Fault("baseline", where, f"baseline {hard['baseline']!r}; expected s0 or anchor")
    if op == "order_last" and not (isinstance(hard.get("after"), dict) and hard["after"].get("last") is True):
        yield Fault("order-last", where, "order_last looks for what came after the last: `after.last: true`")
    for scope in hard.get("scopes", []):
        if scope not in words.scopes and not scope.startswith("${"):
            yield Fault("scope", where, f"scope {scope!r} is not defined")
    for node in _nodes(hard):
        for key in ("event", "unless", "until"):
            named = node.get(key)
            if isinstance(named, str) and not names_in(named) and named not in words.events:
                yield Fault("event", where, f"`{key}` is {named!r}, an event that is not defined")
        if isinstance(node.get("event"), str) and node["event"] in words.events and node.get("where"):
            try:
                parse_pattern({"event": node["event"], "where": _sample(node["where"], "where")})
            except PatternError as error:
                yield Fault("where", where, str(error))


def _parts(hard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The operator and, in a conjunction, its parts."""
    yield hard
    for part in hard.get("of", []):
        yield from _parts(part)


def _events(tree: Any) -> set[str]:
    return {node[key] for node in _nodes(tree) for key in ("event", "unless", "until") if isinstance(node.get(key), str)}


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)


# -- entries ------------------------------------------------------------------------------------------------------------------
def _needs(entry: Scenario, catalogue: Catalogue) -> Iterator[Fault]:
    wanted = sorted(needs_of(entry))
    if entry.needs != wanted:
        yield Fault("needs", entry.id, f"`needs` is {entry.needs}; what it rests on is {wanted}")
    for need in sorted(set(entry.needs) - set(catalogue.vocabulary.capabilities)):
        yield Fault("needs", entry.id, f"capability {need!r} is not defined")
    if "net_record" in entry.needs and not entry.hosts:
        yield Fault("hosts", entry.id, "a record of the network needs `hosts`")
    for host in entry.hosts if isinstance(entry.hosts, list) else ():
        if host not in catalogue.vocabulary.mock_hosts.get("roles", {}):
            yield Fault("hosts", entry.id, f"host role {host!r} is not defined")


def _names(entry: Scenario) -> Iterator[Fault]:
    bound = set(entry.bindings) if isinstance(entry, Template) else set()
    used = names_in([entry.trigger.when, [check.hard for check in entry.checks]])
    for name in sorted(used - bound):
        yield Fault("unbound", entry.id, f"${{{name}}} is not among its bindings")


def _stimulus(entry: Template, catalogue: Catalogue) -> Iterator[Fault]:
    probe, plant, closure = entry.type == "probe", entry.stimulus.get("plant"), entry.stimulus.get("closure")
    if bool(entry.stimulus.get("user_intent")) != probe:
        yield Fault("user-intent", entry.id, "`user_intent` belongs to probes, and every probe has one")
    if plant and plant.get("kind") not in catalogue.vocabulary.plants:
        yield Fault("plant", entry.id, f"plant kind {plant.get('kind')!r} is not defined")
    if plant and plant.get("kind") == "dynamic" and not probe:
        yield Fault("plant", entry.id, "a dynamic plant is applied at a delivery: only a probe has one")
    if bool(closure) != probe:
        yield Fault("closure", entry.id, "`closure` belongs to probes, and every probe has one")
    if closure and closure.get("kind") not in catalogue.vocabulary.closure:
        yield Fault("closure", entry.id, f"closure kind {closure.get('kind')!r} is not defined")
    if closure and closure.get("kind") != "unchanged" and not closure.get("how"):
        yield Fault("closure", entry.id, "a closure that changes something says how")
    sub = catalogue.sub_dimensions.get(entry.sub_dimension)
    if sub is None or sub.dimension != entry.dimension:
        yield Fault("sub-dimension", entry.id, f"sub-dimension {entry.sub_dimension!r} is none of {entry.dimension}")
