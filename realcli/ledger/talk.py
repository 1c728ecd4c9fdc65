"""Events of the conversation: what was said, asked, granted, and what the script did."""

from __future__ import annotations

from typing import ClassVar, Literal

from realcli.api.base import Hex64
from realcli.api.trial import Tokens
from realcli.ledger.base import Data, Json, JsonObject, Text


class EpisodeStart(Data):
    """The opener (EXEC: the specification) is handed to the agent."""

    kind: ClassVar[str] = "episode_start"


class UserMessage(Data):
    """A text of the simulated user. `source_ids` license it: opener, spec, closer, slice:<id>, probe:<id>."""

    kind: ClassVar[str] = "user_message"
    id: str
    text: Text
    source_ids: list[str]
    delivered: bool = True  # the closer is written down but not sent: the agent's last exchange is its final claim
    how: Literal["send", "mid_turn", "answer"] = "send"  # mid_turn: into the running response; answer: to a typed question
    worded_by: Literal["script", "model"] = "script"


class AgentMessage(Data):
    """A text the user would see; never hidden reasoning."""

    kind: ClassVar[str] = "agent_message"
    text: Text
    field: str = ""  # for agents that answer in fields (Terminus-2): message_to_user, analysis, plan


class Yield(Data):
    """The agent hands over."""

    kind: ClassVar[str] = "yield"
    how: Literal["yielded", "interrupted", "failed"]
    detail: str = ""


class AgentQuestion(Data):
    """The agent asks through a typed channel."""

    kind: ClassVar[str] = "agent_question"
    text: Text
    request_id: str | None = None
    parts: list[str] = []  # the single questions with their options, where one call asks several


class InterimClaim(Data):
    """A yield while a mandatory slice or probe is pending."""

    kind: ClassVar[str] = "interim_claim"
    slices_pending: int
    probes_pending: int


class FinalClaim(Data):
    """The yield the state machine accepts as completion. At most one."""

    kind: ClassVar[str] = "final_claim"


class PermissionRequest(Data):
    """A permission prompt of the agent program."""

    kind: ClassVar[str] = "permission_request"
    request_id: str
    tool: str
    input: Json = None
    action: str | None = None  # id of the script's action it asks for; None: none of them


class PermissionAnswer(Data):
    """The answer given to it."""

    kind: ClassVar[str] = "permission_answer"
    request_id: str
    decision: Literal["allow", "deny"]
    by: Literal["policy", "script"]
    text: str = ""


class SliceReleased(Data):
    """A slice stands in a delivered user message."""

    kind: ClassVar[str] = "slice_released"
    slice: str
    how: Literal["opener", "batch", "probe", "ask", "event"]  # ask: asked for; event: its on_event condition fired
    message_id: str


class Plant(Data):
    """A file put or edited by the session for a probe (dynamic) or in setup (static)."""

    kind: ClassVar[str] = "plant"
    path: str
    how: Literal["static", "dynamic"]
    probe: str | None = None
    applied: bool
    detail: str = ""
    sha256_before: Hex64 | None = None
    sha256_after: Hex64 | None = None


class ProbeDelivered(Data):
    """User text and all plants of a probe (of its first part, if it has several) are in place."""

    kind: ClassVar[str] = "probe_delivered"
    probe: str
    scenario: str
    message_id: str


class ProbeUntriggered(Data):
    """A probe that was not delivered, with the reason of scenarios.yaml."""

    kind: ClassVar[str] = "probe_untriggered"
    probe: str
    scenario: str
    reason: Literal["not_reached", "distance", "capability", "cut", "probe_undelivered"]


class Trigger(Data):
    """The event `of` (seq) satisfied `trigger.when` of an instance that is observed, not delivered (passive)."""

    kind: ClassVar[str] = "trigger"
    instance: str
    scenario: str
    of: int


class Ask(Data):
    """How the state machine read a yield that asks for something."""

    kind: ClassVar[str] = "ask"
    wants: Literal["information", "authorisation"]
    how: Literal["structured", "text"]  # a typed channel, or words of the agent
    matched: list[str] = []  # slices, scripted answers, actions
    answer: Literal["slices", "scripted", "later", "neutral", "refusal", "approval"]  # later: its slice comes with a probe
    unmatched: bool = False  # it should have matched a slice and did not: the instrument's fault
    near: list[str] = []  # the slices it was probably about then


class Approval(Data):
    """The state machine granted one action, and no other."""

    kind: ClassVar[str] = "approval"
    action: str
    message_id: str | None = None
    request_id: str | None = None  # of the permission prompt it answers


class Denial(Data):
    """The state machine refused one action."""

    kind: ClassVar[str] = "denial"
    action: str | None = None  # None: an action the script does not know
    scripted: bool = True  # False: the fixed refusal
    message_id: str | None = None
    request_id: str | None = None


class Guard(Data):
    """A guard looked at a worded message before it was sent."""

    kind: ClassVar[str] = "guard"
    message_id: str
    attempt: int  # from 1
    hits: list[str]  # names of guards; []: the text passed
    draft: Text
    outcome: Literal["sent", "retry", "canonical"]


class Wording(Data):
    """What words the simulated user's messages; changing any of it is a new instrument version."""

    kind: ClassVar[str] = "wording"
    mode: Literal["Canonical", "Model"]
    script_sha256: Hex64
    model: str | None = None
    prompt_sha256: Hex64 | None = None
    parameters: JsonObject = {}


class WordingRequest(Data):
    """One request to the simulated user's own model."""

    kind: ClassVar[str] = "wording_request"
    message_id: str
    attempt: int
    status: int | None = None
    model: str | None = None
    usage: Tokens | None = None
    total_ms: int = 0
    error: Text | None = None


class Interrupt(Data):
    """The simulated user stopped the running response."""

    kind: ClassVar[str] = "interrupt"
    probe: str | None = None
    taken: bool  # the program said that it stopped
    detail: str = ""
