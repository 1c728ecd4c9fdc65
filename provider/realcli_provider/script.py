"""The script file: which answer a request gets, and what goes wrong on the way. Documented in docs/provider-script.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from realcli_provider.conversation import Agent, Api, Request


class ScriptError(Exception):
    """A script that cannot be read, or that asks for what this request does not offer; the message says which and what to do."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _pattern(text: object) -> object:
    if isinstance(text, str):
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
    return text


Pattern = Annotated[str, BeforeValidator(_pattern)]


class Match(_Model):
    """A condition on a text; a plain string in the script means `contains`."""

    contains: str | None = None
    matches: Pattern | None = Field(None, description="regular expression, searched; `.` does not match a line end")
    equals: str | None = None
    lacks: str | None = Field(None, description="must not be in the text")

    def holds(self, text: str) -> bool:
        """All that is given has to hold."""
        return (
            (self.contains is None or self.contains in text)
            and (self.matches is None or re.search(self.matches, text, re.MULTILINE) is not None)
            and (self.equals is None or self.equals == text.strip())
            and (self.lacks is None or self.lacks not in text)
        )


class Span(_Model):
    """A condition on a number; a plain number in the script means exactly this one."""

    first: int = Field(1, ge=1, alias="from")
    last: int | None = Field(None, ge=1, alias="to")

    def holds(self, number: int) -> bool:
        """`first` <= number <= `last`."""
        return self.first <= number and (self.last is None or number <= self.last)


Text = Annotated[Match, BeforeValidator(lambda value: {"contains": value} if isinstance(value, str) else value)]
Number = Annotated[Span, BeforeValidator(lambda value: {"from": value, "to": value} if isinstance(value, int) else value)]


class When(_Model):
    """All conditions that are given have to hold."""

    opening: Text | None = Field(None, description="the first text of the user in this conversation")
    said: Text | None = Field(None, description="the newest text of the user")
    result: Text | None = Field(None, description="output of the commands of our last answer; empty after a text")
    shown: Text | None = Field(None, description="everything said and shown in this conversation")
    system: Text | None = None
    model: Text | None = None
    request: Number | None = Field(None, description="number of this request in its conversation, from 1")
    step: Number | None = Field(None, description="the same, counted from the newest text of the user")
    exchange: Number | None = Field(None, description="number of texts of the user so far")
    api: Api | None = None
    agent: Agent | None = None
    tool: str | None = Field(None, description="name of a tool that is offered")
    side: bool | None = Field(False, description="requests without tools (titles, tests, the simulated user); null: both")

    def holds(self, request: Request) -> bool:
        """Whether the request is meant."""
        talk = request.conversation
        texts = [
            (self.opening, talk.opening),
            (self.said, talk.said),
            (self.result, talk.result),
            (self.shown, talk.everything),
            (self.system, request.system),
            (self.model, request.model),
        ]
        numbers = [(self.request, talk.request), (self.step, talk.step), (self.exchange, talk.exchange)]
        return (
            self.side in (None, request.side)
            and self.api in (None, request.api)
            and self.agent in (None, request.agent)
            and (self.tool is None or request.tool(self.tool) is not None)
            and all(match is None or match.holds(text) for match, text in texts)
            and all(span is None or span.holds(number) for span, number in numbers)
        )


class Ask(_Model):
    """A question to the user by the agent's own tool."""

    question: str
    options: list[str] = ["Yes", "No"]
    header: str = "Question"


class Delegate(_Model):
    """Work for a sub-agent. Its requests are a conversation of their own, whose opening is `prompt`."""

    prompt: str
    description: str = "Delegated work"
    background: bool = False


class Write(_Model):
    """A file, written by the agent's own tool where it has one."""

    path: str
    content: str


class Call(_Model):
    """Any tool by its name, with exactly this input (an object; a text for a `custom` tool)."""

    name: str
    input: dict[str, Any] | str = {}
    namespace: str | None = None


class Fault(_Model):
    """What goes wrong with an answer. Several may be combined; `delay` comes first."""

    delay: float = Field(0.0, ge=0, description="seconds before anything")
    status: int | None = Field(None, ge=400, le=599, description="an error answer")
    headers: dict[str, str] = Field({}, description="further headers, e.g. retry-after")
    body: dict[str, Any] | str | None = Field(None, description="body of the error answer; default: the API's own")
    reset: Literal["before", "first-byte"] | None = Field(
        None, description="break the connection: no byte, or headers and one byte"
    )
    stall: Literal["before", "first-byte", "middle"] | None = Field(None, description="send no more, keep the connection open")
    stall_seconds: float | None = Field(None, ge=0, description="then go on; default: until the client leaves")
    cut: bool | int = Field(False, description="break a stream in the middle, or after so many events")
    end: bool = Field(False, description="with `cut`: end the stream in good order instead of breaking the connection")
    error_event: bool = Field(False, description="with `cut`: say in the stream that the provider is overloaded, then end")
    slow: float = Field(0.0, ge=0, description="seconds between two events of a stream")
    garbage: bool = Field(False, description="200 with bytes that no client can read")
    model: str | None = Field(None, description="another model id in the answer")
    echo: bool = Field(False, description="answer with the request's headers as text")
    usage: dict[str, int] | None = Field(None, description="input, cache_read, cache_write, output, reasoning")
    times: int | None = Field(None, ge=1, description="only the first so many times that this same moment comes; then no more")


class Answer(_Model):
    """One answer. What is abstract is put into the tools that the agent offers. Order: think, say, then the calls."""

    think: str | None = None
    say: str | None = None
    run: str | list[str] | None = Field(None, description="shell commands; several are calls in parallel")
    background: bool = Field(False, description="with `run`: in the background, where the agent's tool can")
    duration: float = Field(1.0, ge=0, le=60, description="with `run`: seconds Terminus-2 waits after the keystrokes")
    write: Write | None = None
    ask: Ask | None = None
    delegate: Delegate | list[Delegate] | None = None
    call: Call | list[Call] | None = None
    stop: Literal["end", "length", "refusal"] | None = Field(None, description="why the answer ends; default: its natural end")
    done: bool | None = Field(
        None, description="Terminus-2: task_complete; default: true for a text where there is no user's field"
    )
    data: Any = Field(None, alias="json", description="a text that is this JSON, e.g. an answer of the simulated user's model")
    raw: str | None = Field(None, description="a text as it is, also where the agent expects JSON")
    fault: Fault | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        given = self.model_fields_set - {"background", "duration", "fault"}
        if not given and self.fault is None:
            raise ValueError("the answer is empty: give say, run, ask, call, ... or a fault")
        if len({"raw", "data"} & given) == 2 or ("say" in given and {"raw", "data"} & given):
            raise ValueError("say, json and raw are three ways to give the text: take one")
        return self


class Rule(_Model):
    """Which requests, and their answers: one for all (`then`), one after the other (`steps`), or a policy in Python."""

    name: str | None = None
    when: When = When()
    then: Answer | None = None
    steps: list[Answer] | None = Field(None, min_length=1)
    count: Literal["exchange", "conversation"] = Field("exchange", description="what numbers `steps`")
    policy: str | None = Field(None, pattern=r"^[\w.]+:\w+$", description="module:function")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(part is not None for part in (self.then, self.steps, self.policy)) != 1:
            raise ValueError("a rule has exactly one of then, steps, policy")
        return self


class Trouble(_Model):
    """A fault for whatever answer is due."""

    when: When = When(side=None)
    nth: int | None = Field(None, ge=1, description="only the n-th generation request this process gets, from 1")
    fault: Fault


class Script(_Model):
    """The file."""

    version: Literal[1] = 1
    models: list[str] = ["claude-sonnet-4-5", "claude-opus-4-8", "claude-haiku-4-5", "gpt-5.2", "glm-5.3"]
    answer_as: str | None = Field(None, description="the model id of every answer; default: the one asked for")
    capture: dict[str, Pattern] = Field(
        {}, description="name -> expression with one group; {{name}} in answers becomes its first match"
    )
    rules: list[Rule] = []
    faults: list[Trouble] = []
    otherwise: Answer = Answer(say="There is nothing left for me to do.")
    side: Answer = Field(Answer(say="ok"), description="requests without tools that no rule is for")


def read_script(path: Path) -> Script:
    """ScriptError names the file, the field and what was expected."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ScriptError(f"{path}: expected a mapping with rules, found {type(data).__name__}; see docs/provider-script.md")
    try:
        return Script.model_validate(data)
    except ValidationError as error:
        found = [f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()]
        raise ScriptError(f"{path}: " + "; ".join(found)) from error
