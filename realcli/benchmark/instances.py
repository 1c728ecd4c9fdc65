"""Probes and passive instances against their templates: delivery, bindings, plants, closure, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from realcli.benchmark.catalogue import Catalogue, CheckTemplate, Template
from realcli.benchmark.needs import changed_paths
from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.play import resolve
from realcli.benchmark.problems import Problem
from realcli.benchmark.references import OPENER, slices_in
from realcli.benchmark.script import BATCH, ORACLE, PROBE, SCRIPT
from realcli.benchmark.script_models import Passive, Probe, Script
from realcli.benchmark.when import mapping
from realcli.checks.rehearsal import refusal
from realcli.trajectory.bindings import action_id, names_in, whole_name
from realcli.trajectory.exposure import EXPOSES, Exposure, worse
from realcli.trajectory.patterns import path_matches


def check_probes(script: Script, catalogue: Catalogue) -> Iterator[Problem]:
    """Each probe against its template."""
    _, problems = resolve(script, catalogue)
    yield from problems
    opener: list[str] = []
    for probe in script.probes:
        template = catalogue.templates.get(probe.scenario)
        if template is None or template.type != "probe":
            continue
        field = f"probe {probe.id!r}"
        unbound = list(_bindings(probe.bindings, template, field))
        yield from unbound
        yield from _delivery(script, probe, template, field)
        yield from _plant(probe, template, field)
        yield from _closure(script, probe, template, field)
        yield from _narrower(probe, template, field)
        refused = None if unbound or problems else refusal(probe, template)
        if refused is not None:
            yield Problem(SCRIPT, field, f"no judge of this version takes it: {refused}", "bind another template or correct it")
        text = next((part.text for part in script.slices if part.id == probe.slice), "")
        if text not in probe.text:
            remedy = "put the slice's text in verbatim"
            yield Problem(SCRIPT, field, f"its text does not hold the text of slice {probe.slice!r}", remedy)
        opener += [probe.id] if template.trigger.delivery == "opener" else []
    if len(opener) > 1:
        yield Problem(SCRIPT, "probes", f"{' and '.join(opener)} are part of the opening message", "keep one of them")


def check_passive(script: Script, catalogue: Catalogue) -> Iterator[Problem]:
    """Each passive instance against its template."""
    _, problems = resolve(script, catalogue)
    for passive in script.passive:
        template = catalogue.templates.get(passive.scenario)
        if template is not None and template.type == "passive":
            field = f"passive {passive.name!r}"
            unbound = list(_bindings(passive.bindings, template, field))
            yield from unbound
            yield from _slices(script, passive, template, field)
            refused = None if unbound or problems else refusal(passive, template)
            if refused is not None:
                remedy = "bind another template or correct it"
                yield Problem(SCRIPT, field, f"no judge of this version takes it: {refused}", remedy)


def check_evidence(script: Script, oracle: Oracle, catalogue: Catalogue) -> Iterator[Problem]:
    """What checks are decided by is declared: checkers, actions, canaries."""
    actions = {action.id for action in script.actions}
    instances: list[tuple[str, Probe | Passive]] = [(f"probe {probe.id!r}", probe) for probe in script.probes]
    instances += [(f"passive {passive.name!r}", passive) for passive in script.passive]
    for field, instance in instances:
        template = catalogue.templates.get(instance.scenario)
        if template is None:
            continue
        yield from _hosts(template, oracle, field)
        for check in template.checks:
            for node in _nodes(check.hard):
                canary = instance.bindings.get(whole_name(node.get("canary")) or "")
                if canary is not None and canary not in oracle.canaries:
                    remedy = f"declare it there, or bind the name of a canary in {field}"
                    yield Problem(ORACLE, "canaries", f"{canary!r} is missing", remedy)
            for name in sorted(_checkers(check)):
                for id in _ids(instance.bindings.get(name)):
                    if id not in oracle.checkers:
                        remedy = f"declare it there, or correct the binding {name} of {field}"
                        yield Problem(ORACLE, "checkers", f"{id!r} is missing", remedy)
            of = check.approval_of
            if of is not None and of in instance.bindings and action_id(instance.bindings[of]) not in actions:
                remedy = "name one of actions[].id (an action with cmd or paths names it as `id`)"
                yield Problem(SCRIPT, f"{field} bindings.{of}", "names no action, so nobody could ever grant it", remedy)


def check_watched(script: Script, catalogue: Catalogue, watch: list[str]) -> Iterator[Problem]:
    """Files whose changes a trigger waits for or a check counts are watched: a change nobody sees reads as none."""
    instances: list[tuple[str, Probe | Passive]] = [(f"probe {probe.id!r}", probe) for probe in script.probes]
    instances += [(f"passive {passive.name!r}", passive) for passive in script.passive]
    for field, instance in instances:
        template = catalogue.templates.get(instance.scenario)
        if template is None:
            continue
        trees = [template.trigger.when, *(check.hard for check in template.checks if check.hard is not None)]
        for name in sorted({name for value in changed_paths(trees) if (name := whole_name(value)) is not None}):
            value = instance.bindings.get(name)
            globs = value.get("paths") if isinstance(value, dict) else value
            for glob in [globs] if isinstance(globs, str) else globs if isinstance(globs, list) else []:
                if isinstance(glob, str) and glob.startswith("/") and not path_matches(glob, watch):
                    remedy = "add it: a change of it would be seen nowhere"
                    yield Problem("task.toml", "metadata.realcli.watch", f"{name} {glob!r} of {field} is missing", remedy)


def _hosts(template: Template, oracle: Oracle, field: str) -> Iterator[Problem]:
    """Hosts in the roles the template needs."""
    roles = {host.role for host in oracle.hosts.values()}
    for role in [] if template.hosts == "declared" else template.hosts:
        if role not in roles:
            yield Problem(ORACLE, "hosts", f"none has the role {role}", f"declare one: {template.id} of {field} needs it")


def _checkers(check: CheckTemplate) -> set[str]:
    """Bindings that name checker scripts."""
    found: set[str] = set()
    for node in _nodes(check.hard):
        for key, op in (("run", "script"), ("oracles", "claims_vs_oracles")):
            name = whole_name(node.get(key)) if node.get("op") == op else None
            found |= {name} if name else set()
    return found


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)


def _ids(value: JsonValue) -> list[str]:
    """Checkers a binding names: one, or one for each kind of claim."""
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, str)]
    return [value] if isinstance(value, str) else []


def _bindings(bindings: dict[str, JsonValue], template: Template, field: str) -> Iterator[Problem]:
    for name in sorted(set(template.bindings) - set(bindings)):
        yield Problem(SCRIPT, f"{field} bindings.{name}", "is not filled", f"bind it: {template.bindings[name]}")
    for name in sorted(set(bindings) - set(template.bindings)):
        yield Problem(SCRIPT, f"{field} bindings.{name}", f"is no binding of {template.id}", "remove it")
    for name, value in sorted(bindings.items()):
        empty = value in (None, "", [], {}) and "may be empty" not in template.bindings.get(name, "")
        if empty:
            yield Problem(SCRIPT, f"{field} bindings.{name}", "is empty", f"bind it: {template.bindings.get(name, '')}")
        if names_in(value):
            yield Problem(SCRIPT, f"{field} bindings.{name}", "holds a placeholder", "write the value itself")


def _delivery(script: Script, probe: Probe, template: Template, field: str) -> Iterator[Problem]:
    delivery, entry = template.trigger.delivery, PROBE + probe.id
    if delivery == "at_yield" and entry not in script.order:
        yield Problem(SCRIPT, "order", f"{entry!r} is missing", "add it where it is due")
    if delivery != "at_yield" and entry in script.order:
        remedy = "remove it: it comes when its trigger fires" if delivery == "mid_turn" else "remove it: it comes with the opener"
        yield Problem(SCRIPT, "order", f"{entry!r} is delivered {delivery}", remedy)
    if probe.interrupt and delivery != "mid_turn":
        yield Problem(SCRIPT, f"{field} interrupt", f"{template.id} is delivered {delivery}", "remove it: nothing is interrupted")
    if delivery != "at_yield" and probe.edit is not None:
        yield Problem(SCRIPT, f"{field} edit", f"cannot be put in place: {template.id} is delivered {delivery}", "remove it")
    if "several parts" in str(template.stimulus.get("user_intent")).lower() and len(probe.parts) < 2:
        remedy = "write each further message into `parts`"
        yield Problem(SCRIPT, f"{field} parts", f"{template.id} comes in several parts, found {1 + len(probe.parts)}", remedy)


def _plant(probe: Probe, template: Template, field: str) -> Iterator[Problem]:
    if (template.plant == "dynamic") != (probe.edit is not None):
        what, remedy = ("has no edit", "add it") if probe.edit is None else ("has an edit", "remove it")
        yield Problem(SCRIPT, f"{field} edit", f"{what}, but the plant of {template.id} is {template.plant}", remedy)
    elif probe.edit is not None:
        if "USER_EDIT" in probe.bindings and probe.bindings["USER_EDIT"] != probe.edit.dump():
            yield Problem(SCRIPT, f"{field} bindings.USER_EDIT", "is not the probe's edit", "repeat `edit` there")
        file = probe.bindings.get("FILE")
        if file is not None and probe.edit.path != file:
            yield Problem(SCRIPT, f"{field} edit.path", f"is {probe.edit.path!r}", f"edit {file!r}, the file of the trigger")


def _closure(script: Script, probe: Probe, template: Template, field: str) -> Iterator[Problem]:
    closure = template.stimulus.get("closure") or {}
    kind, how = closure.get("kind"), str(closure.get("how", ""))
    if kind == "returns" and probe.closure is None and len(probe.parts) == 0:
        remedy = f"add `closure` with the text that ends it: {how}"
        yield Problem(SCRIPT, f"{field} closure", "is missing, so the specification would not end where it began", remedy)
    if "next user message" in how and not probe.parts:
        yield Problem(SCRIPT, f"{field} parts", "is empty", f"add the message that follows: {how}")
    said = probe.closure
    for name, text in [] if said is None else [("text", said.text), ("told.text", said.told.text if said.told else None)]:
        carried = next((part.text for part in script.slices if said is not None and part.id == said.slice), "")
        if text is not None and carried not in text:
            what = f"does not hold the text of slice {said.slice!r}, which it releases" if said is not None else ""
            yield Problem(SCRIPT, f"{field} closure.{name}", what, "put the slice's text in verbatim")
    yield from _slices(script, probe, template, field)


def _slices(script: Script, instance: Probe | Passive, template: Template, field: str) -> Iterator[Problem]:
    """Bindings that name slices."""
    known = {part.id for part in script.slices}
    first = next((entry for entry in script.order if entry.startswith(BATCH)), BATCH)
    early = {OPENER, *script.batches.get(first.removeprefix(BATCH), [])}
    for name, meaning in template.bindings.items():
        value = instance.bindings.get(name)
        if not name.endswith("_SLICE") or value is None:
            continue
        opener = OPENER in meaning
        if not isinstance(value, str) or (value not in known and not (opener and value == OPENER)):
            remedy = "name one of slices[].id" + (f", or {OPENER!r}" if opener else "")
            yield Problem(SCRIPT, f"{field} bindings.{name}", f"slice {value!r} does not exist", remedy)
        elif "in the first batch" in meaning and value not in early:
            yield Problem(SCRIPT, f"{field} bindings.{name}", f"slice {value!r} is not in the first batch", "put it there")
    for atom in _nodes(template.trigger.when):
        bound = whole_name(atom.get("slice_pending"))
        if bound is not None and isinstance(instance, Probe) and instance.slice != instance.bindings.get(bound):
            remedy = f"write {instance.bindings.get(bound)!r}, as the trigger says"
            yield Problem(SCRIPT, f"{field} slice", f"is {instance.slice!r}", remedy)


def _narrower(probe: Probe, template: Template, field: str) -> Iterator[Problem]:
    if probe.when is None:
        return
    allowed = template.trigger.exposure
    for node in _nodes(mapping(probe.when)):
        event = node.get("event")
        if event in ("final_claim", "episode_end"):
            yield Problem(SCRIPT, f"{field} when", f"{event} comes after the last message", "wait for something earlier")
        elif event is not None and worse(_exposure(event), allowed):
            remedy = "wait for what the script or unavoidable work brings: an agent must not be able to avoid a probe"
            yield Problem(SCRIPT, f"{field} when", f"{event} is the agent's choice, {template.id} is not", remedy)
    if probe.slice is not None and probe.slice in slices_in(_distances(mapping(probe.when))):
        yield Problem(SCRIPT, f"{field} when", f"waits for slice {probe.slice!r}, which it releases itself", "name another slice")


def _distances(when: Any) -> Any:
    return [{"slice": node["exchanges_since"]} for node in _nodes(when) if "exchanges_since" in node]


def _exposure(event: str) -> Exposure:
    """A delivery is the script's; what may be no trigger of a template (an approval) is the agent's to bring about."""
    return "instrument" if event == "probe_delivered" else EXPOSES.get(event, "agent")
