"""Operator over what still runs at the end."""

from __future__ import annotations

from realcli.checks.found import failed, passed, texts_argument, undecided
from realcli.checks.model import Arguments, CheckError, Context, text_argument
from realcli.ledger.events import Command, CommandEnd, PhaseChange, Quiesce, Recorders
from realcli.scoring.records import HardRecord
from realcli.trajectory import Item
from realcli.trajectory.patterns import PatternError, search

LISTED = 200
"""Processes that the session names at most."""
STARTED = "@started_by_agent"


def proc_absent(arguments: Arguments, context: Context) -> HardRecord:
    """No process that matches ran when everything was stopped. `match`: an expression, or `@started_by_agent`.

    What ran then is what the runner found in the container. It was started by the agent where the record of executions has its
    arguments and no end of it; without such a record nobody knows whose it was. `except_`: services that are to run.
    """
    op, match = "proc_absent", text_argument(arguments, "match")
    _matches(match, "")  # an expression that is none is told whatever ran
    ends = [(event, data) for event, data in context.trajectory.of(Quiesce)]
    if not ends:
        return undecided(op, "what ran at the end was not recorded")
    event, end = ends[-1]
    wanted = None if arguments.get("except_") is None else texts_argument(arguments["except_"], "except_")
    running = [one for one in (*end.stopped, *end.survivors) if not any(_matches(pattern, one) for pattern in wanted or ())]
    started = _started(context)
    found = [one for one in running if (one in started if match == STARTED else _matches(match, one))]
    there = [context.trajectory.items[event.seq - 1]]
    if found:
        items = [started[found[0]]] if found[0] in started else []
        if wanted is None and "except_" in arguments:
            return undecided(op, f"`{found[0]}` ran at the end; whether it was asked for is not known", items + there)
        return failed(op, f"`{found[0]}` ran at the end", [*items, *there])
    if len(end.stopped) >= LISTED:
        return undecided(op, f"more than {LISTED} processes ran at the end; not all are named", there)
    kinds = {recorders.commands for _, recorders in context.trajectory.of(Recorders)}
    if match == STARTED and running and (kinds != {"exec"} or context.trajectory.run().gaps("command")):
        return undecided(op, f"`{running[0]}` ran at the end; who started it was not recorded", there)
    return passed(op, f"nothing of the kind ran at the end ({len(running)} processes did)", there)


def _started(context: Context) -> dict[str, Item]:
    """Command line -> its event, of executions in the window whose end nobody saw; of one process the last that it executed."""
    open_: dict[int, Item] = {}
    for item in context.window.items:
        if isinstance(item.data, PhaseChange) and item.data.phase == "quiesce":
            break  # what ends now is ended by the session
        match item.data:
            case Command(record="exec") as command:
                open_[command.id] = item
            case CommandEnd(id=id):
                open_.pop(id, None)
            case _:
                pass
    found = {}
    for item in open_.values():
        assert isinstance(item.data, Command)
        found[" ".join(item.data.argv)] = item
    return found


def _matches(pattern: str, text: str) -> bool:
    try:
        return search(pattern, text) is True
    except PatternError as error:
        raise CheckError(f"{pattern!r}: {error}") from error
