"""How to make each agent do what a case needs. One module per agent with a `DRIVER`; a module more is a column more."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

from realcli.api.models import Api

Step = dict[str, Any]


class Differs(NamedTuple):
    """A case that this agent cannot do as the others do. Stands in the docs, is never skipped silently."""

    state: Literal["fails", "no such thing"]
    """`fails`: the case runs and has to fail; `no such thing`: the program has nothing of the kind, so it does not run."""
    why: str
    reference: str
    """Where upstream says so: a document, an issue, a source file of the pinned version."""


@dataclass(frozen=True)
class Driver:
    """One agent. Answers of the scripted model are steps of docs/provider-script.md, abstract where they can be."""

    program: str
    version: str
    api: Api
    model: str
    program_dir: Callable[[], Path]
    with_parent: bool = field(default=False, kw_only=True)
    """What lies beside that directory belongs to the program too."""
    owns: Callable[[str], bool]
    """Whether a command line is one of the program's own processes."""
    question_tool: str
    """Its means to ask, offered in COLLAB alone."""
    questions: Callable[[list[str]], Step]
    """A call that asks several questions."""
    asked_command: str
    """A command for which the program asks with permissions Ask."""
    sub_agent: Callable[[str, str], list[dict[str, Any]]]
    """(prompt for the sub-agent, final text) -> rules of the main conversation, the first request of which is answered so that
    a sub-agent gets the prompt."""
    full: Mapping[str, int]
    """Usage after which the program compacts its history."""
    compacts: Callable[[Mapping[str, Any]], bool]
    """Whether a request (`headers`, `body`) asks for a summary."""
    instructions: str
    """Path of a file of instructions in the program's configuration folder."""
    mcp_call: Callable[[str, str, dict[str, Any]], list[Step]]
    """(server, tool, input) -> steps of the model that call it."""
    confirms: Callable[[Mapping[str, Any]], bool] = lambda request: False
    """Whether a request only asks the model whether it is sure; such requests are turns, and left out of `Bench.turns`."""
    confirmations: int = 0
    """Such requests per claim."""
    spoken: Callable[[Sequence[str]], list[str]] = list
    """Of its visible texts those that the script has it say."""
    lasting: Mapping[str, Any] = field(default_factory=lambda: {"slow": 0.05})
    """Fault that makes an answer of some length take a second or two."""
    endless: Mapping[str, Any] = field(default_factory=lambda: {"slow": 0.05})
    """Fault that keeps a very long answer under way for as long as anybody waits."""
    patience: tuple[tuple[ModuleType, str], ...] = ()
    """Constants that say how long the adapter waits for its program."""
    capture: Mapping[str, str] = field(default_factory=dict)
    """`capture` of the script in the sub-agent's case."""
    texts: Literal["reply", "adapter"] = "reply"
    limit_error: str = "call limit reached"
    """What the program says when a request was refused for the limit."""
    forged: Callable[[Any], list[Mapping[str, Any]]] = lambda adapter: []
    """(adapter) -> lines that say, in the program's own protocol, that it asks a question and that it hands over."""
    goal: Callable[[str, str], list[Step]] = lambda first, last: []
    """(text of the first part, last text) -> steps: a goal is set, a text ends the turn, the goal is reached, a text."""
    volatile: tuple[str, ...] = ()
    """Fields of a request's body that hold random ids."""
    user_text_alone: bool = True
    """The user's text stands in the first request as it is, in a part of its own."""
    sigterm: tuple[int | None, int | None] = (None, 15)
    """(code, signal) with which it ends at SIGTERM."""
    differs: Mapping[str, Differs] = field(default_factory=dict)
    """Cases by name."""


def drivers() -> dict[str, Driver]:
    """All drivers, by the program's name."""
    found = (importlib.import_module(f"{__name__}.{module.name}").DRIVER for module in pkgutil.iter_modules(__path__))
    return {driver.program: driver for driver in sorted(found, key=lambda driver: driver.program)}
