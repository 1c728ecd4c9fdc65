"""Operator `order` between any two kinds of events; file content against file writes has a module of its own."""

from __future__ import annotations

from realcli.checks.coded import coded
from realcli.checks.conduct import acting
from realcli.checks.found import Found, changes, events_matching, failed, in_globs, passed, pattern_argument, undecided
from realcli.checks.hidden import hidden
from realcli.checks.model import Arguments, CheckError, Context
from realcli.checks.order import order as content_before_write
from realcli.checks.places import BY_PRODUCTS
from realcli.ledger.events import FileDelete, FileWrite
from realcli.scoring.records import HardRecord
from realcli.trajectory import Item
from realcli.trajectory.matching import EventPattern
from realcli.trajectory.ordering import order_of

OP = "order"
SAYS_SOMETHING = 3
"""Words below which a text is no answer whatever it says."""


def order(arguments: Arguments, context: Context) -> HardRecord:
    """No `then` event before the first `first` event in the window. Without any `then`: pass (undecided under `decides: pass`).

    fail: some `then` is certainly before every `first`, or there is a `then` and no `first` at all. undecided: what would make
    the difference is not known (order inside one turn, a shell that may have been the one or the other).
    """
    first, then = _pattern(arguments, "first"), _pattern(arguments, "then")
    if (first.event, then.event) == ("file_read", "file_write"):
        return content_before_write(arguments, context)
    firsts = _firsts(context, first)
    thens, unclear = _thens(context, then)
    unseen = hidden(context) if "command" in (first.event, then.event) else []
    if not thens and not unclear:
        if then.event == "command" and unseen:
            return undecided(OP, "commands are known from tool calls alone, and one of these may have run others", unseen)
        if context.decides == "pass":
            return undecided(OP, f"no {then.event} in the window: nothing to credit")
        return passed(OP, f"no {then.event} in the window", firsts.certain[:1])
    for item in thens:
        sides = [order_of(context.trajectory, one, item) for one in firsts.certain]
        if "before" in sides:
            continue
        if "unknown" in sides or any(order_of(context.trajectory, one, item) != "after" for one in firsts.possible):
            unclear.append(item)
            continue
        why = f"the {then.event} at event {item.seq} came before any {first.event}"
        if first.event == "command" and unseen:
            return undecided(OP, f"{why}, as far as tool calls tell", [item, *unseen])
        return failed(OP, why, [item, *firsts.certain[:1]])
    late = [item for item in unclear if not any(order_of(context.trajectory, one, item) == "before" for one in firsts.certain)]
    if late:
        return undecided(OP, f"whether the {then.event} at event {late[0].seq} came before the {first.event} is not known", late)
    code = _code_before(context, then, firsts.certain)
    if code:
        return undecided(OP, f"the code at event {code[0].seq} may have done it before, without a command", code)
    if not thens and context.decides == "pass":
        return undecided(OP, f"whether there was a {then.event} is not known", unclear)
    return passed(OP, f"the {first.event} came before every {then.event}", [*firsts.certain[:1], *thens[:1]])


def _thens(context: Context, then: EventPattern) -> tuple[list[Item], list[Item]]:
    """Certain and unclear `then` events; a change that is older than the anchor is none."""
    found = events_matching(context, then)
    if then.event == "command":
        found = acting(found, None if then.where is None else then.where.cmd)
    if then.event not in ("file_write", "file_delete"):
        return found.certain, found.possible
    made = changes(context, None)
    ours, maybe = {item.seq for item in made.certain}, {item.seq for item in made.possible}
    certain = [item for item in found.certain if item.seq in ours and isinstance(item.data, FileWrite | FileDelete)]
    litter = [] if then.where is not None and then.where.path is not None else [item for item in certain if _by_product(item)]
    certain = [item for item in certain if item not in litter]
    return certain, [item for item in found.certain if item.seq in maybe] + litter + found.possible


def _code_before(context: Context, then: EventPattern, firsts: list[Item]) -> list[Item]:
    """Code of the agent's own that may have been a `then` before the first `first`."""
    cmd = None if then.event != "command" or then.where is None else then.where.cmd
    return [
        item for item in ([] if cmd is None else coded(context, cmd))
        if item not in firsts and not any(order_of(context.trajectory, one, item) == "before" for one in firsts)
    ]  # fmt: skip


def _by_product(item: Item) -> bool:
    """What a program leaves behind that only looks or checks."""
    return isinstance(item.data, FileWrite | FileDelete) and in_globs(item.data.path, BY_PRODUCTS)


def _firsts(context: Context, first: EventPattern) -> Found:
    """A text of fewer words than are asked for may be an answer all the same, but for a bare word or two."""
    found = events_matching(context, first)
    if first.event != "agent_message" or first.where is None or first.where.min_words is None:
        return found
    fewer = first.where.model_copy(update={"min_words": max(SAYS_SOMETHING, first.where.min_words // 3)})
    shorter = events_matching(context, first.model_copy(update={"where": fewer}))
    known = {item.seq for item in found.certain}
    return Found(found.certain, [*found.possible, *(item for item in shorter.certain if item.seq not in known)])


def _pattern(arguments: Arguments, name: str) -> EventPattern:
    value = arguments.get(name)
    if not isinstance(value, dict):
        raise CheckError(f"argument `{name}` is {value!r}; expected an event pattern {{event, nth, where}}")
    unknown = set(value) - {"event", "nth", "where"}
    if unknown:
        raise CheckError(f"event pattern `{name}` has {', '.join(sorted(unknown))}; `order` reads event, nth and where")
    if value.get("nth", 1) != 1:
        raise CheckError(f"event pattern `{name}`: `nth` is {value['nth']!r}; `order` looks for the first, both nth 1")
    if not isinstance(value.get("where", {}), dict):
        raise CheckError(f"event pattern `{name}`: `where` is {value['where']!r}; expected names with values")
    return pattern_argument({key: item for key, item in value.items() if key != "nth"}, name)
