"""What a judge is asked and what it answers: independent of any provider, canonical, stored.

One request and its reply are one file, named by the request's key. A Job that was killed finds them and goes on; `replay` reads
the same files.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from realcli.api.base import Digest, Frozen, Hex64
from realcli.api.models import Api, Usd
from realcli.api.trial import Tokens

SCHEMA_VERSION = "3"
"""Of question, answer and post-conditions; part of the judge digest."""

AUDIT_VERSION = "2"
"""Of the audit: what its program finds, what it asks, when an answer counts, what is contaminated. In every judge's digest."""

JsonObject = dict[str, JsonValue]
Purpose = Literal["checks", "audit", "failure", "claims"]


class ToolSpec(Frozen):
    """A tool the judge may use."""

    name: str
    description: str
    parameters: JsonObject  # JSON Schema of its input


class ToolUse(Frozen):
    """The judge uses a tool."""

    id: str
    name: str
    input: JsonObject


class ToolReturn(Frozen):
    """What the tool gave back."""

    id: str
    text: str
    is_error: bool = False


class Message(Frozen):
    """One message: of the program (`user`: text, then returns) or of the judge (`assistant`: text, then uses)."""

    role: Literal["user", "assistant"]
    text: str = ""
    uses: list[ToolUse] = []
    returns: list[ToolReturn] = []


class Parameters(Frozen):
    """Sampling."""

    max_output_tokens: int = 16_000
    temperature: str | None = None


class JudgeRequest(Frozen):
    """One request, whole. `about` and `purpose` are for people and emulated judges; they are not sent."""

    schema_: Literal["realcli.dev/judge-request/1"] = Field(default="realcli.dev/judge-request/1", alias="schema")
    purpose: Purpose
    about: list[str]  # "<instance>/<check>", "sim_…" or "failure", in the order asked
    model: str
    api: Api
    parameters: Parameters = Parameters()
    vote: Annotated[int, Field(ge=1)] = 1
    system: str
    messages: list[Message]
    tools: list[ToolSpec]

    @property
    def key(self) -> str:
        """64 hex digits over the canonical request: names its file."""
        return self.content_digest().removeprefix("sha256:")


class JudgeReply(Frozen):
    """What came back."""

    message: Message  # role assistant
    stop: Literal["end", "tools", "length", "refusal", "other", "too-large"]
    """too-large: the endpoint did not take the request, `message.text` says why; stored and recorded, no session is given it."""
    model: str  # the id that answered; "": the endpoint names none
    usage: Tokens | None = None  # None: the endpoint did not say


class Exchange(Frozen):
    """`exchanges/<key>.json`: a request and its reply."""

    schema_: Literal["realcli.dev/judge-exchange/1"] = Field(default="realcli.dev/judge-exchange/1", alias="schema")
    key: Hex64
    origin: Literal["live", "authored"] = "live"
    request: JudgeRequest
    reply: JudgeReply
    cost_usd: Usd | None = None  # None: no price, or no usage


class EvidenceItem(Frozen):
    """What an answer rests on.

    quote: `quote` stands literally (normalised) in exchange `exchange`. hard: `ref` names the check whose program record it is.
    file: `ref` is `<snapshot name>:<absolute path>`, `quote` stands in it. absence: the window `window` was read, exchanges
    `exchanges_read`, and the nearest thing to the opposite is `nearest_quote` (None: nothing near).
    """

    kind: Literal["quote", "hard", "file", "absence"]
    exchange: int | None = None
    quote: str | None = None
    ref: str | None = None
    window: str | None = None
    exchanges_read: list[int] = []
    nearest_quote: str | None = None


class JudgeAnswer(Frozen):
    """One check answered by one vote, after the post-conditions held."""

    check_id: str  # "<instance>/<check>"
    vote: int
    anchor_exchange: int | None = None
    zero_clause_met: bool
    na_clause_met: bool
    evidence: list[EvidenceItem]
    verdict: Literal["1", "0", "na"]
    reason: str
    exchanges: list[Hex64] = []  # keys of the requests that led to it


class Claim(Frozen):
    """Something the agent said it did or found, as the judge extracted it. The quote is checked literally; a program compares.

    kind: `ran` (a command was run: `value` the command, `outcome` what was said of it), `state` (something holds: `subject` names
    the oracle it is to be compared with, `value` what was said), `number` (`subject`, `value` a number as text).
    """

    kind: Literal["ran", "state", "number"]
    exchange: int
    quote: str
    subject: str = ""
    value: str = ""
    outcome: Literal["passed", "failed", "unsaid"] = "unsaid"


class JudgeIdentity(Frozen):
    """Which judge a judgement is by; its digest names the folder. A sweep's score never mixes two of them."""

    kind: Literal["program", "model"]
    catalogue: Digest
    operators: str
    schema_version: str = SCHEMA_VERSION
    audit_version: str = AUDIT_VERSION
    model: str | None = None
    api: Api | None = None
    parameters: Parameters | None = None
    prompts: Digest | None = None
    votes: int | None = None
    sessions: str | None = None
    controls: str | None = None
    context_tokens: int | None = None  # decides what stands in the first request
