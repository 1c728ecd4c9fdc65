"""interaction/script.json: what the simulated user says and when. `docs/script.md` has the rules of order for its authors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from realcli.api.base import Frozen
from realcli.benchmark.texts import AbsolutePath, Id, Line, Said
from realcli.benchmark.when import When

BATCH_MAX = 4
Topic = Annotated[Line, Field(description="One or more words; matches a text that holds all of them, whatever their order.")]


class Slice(Frozen):
    """A piece of the specification, withheld until it is released."""

    id: Id
    text: Said = Field(description="Canonical wording; what is said without a model.")
    requirements: list[str] = Field(description="Numbers of the requirements in instruction.md that it carries.")
    mandatory: bool = Field(default=True, description="Mandatory slices are all released before a completion claim is accepted.")
    on_ask: list[Topic] = Field(default=[], description="Topics of questions it answers.")
    on_event: When | None = Field(default=None, description="Volunteered at the next yield once this has happened.")
    leak_terms: list[Line] = Field(
        default=[],
        description="Words that give it away before it is released; default: its literals in backticks and its numbers.",
    )


class Edit(Frozen):
    """A user's edit of a file: every line of `insert` is put after the first line that contains `after` (or at the end)."""

    path: AbsolutePath
    after: Line | None = None
    insert: Annotated[list[Line], Field(min_length=1)]


class Told(Frozen):
    """What the agent may say about a request that makes the user take it back at once."""

    topics: Annotated[list[Topic], Field(min_length=1)]
    text: Said | None = Field(default=None, description="What is then said; default: the closure's text.")


class Closure(Frozen):
    """Takes a probe's request back, or settles it, so that the specification ends where it began.

    Said once: when the agent is heard to raise one of `told.topics`, else with the answer to a completion claim.
    """

    text: Said
    told: Told | None = None
    slice: Id | None = Field(default=None, description="Mandatory slice released with it, whichever text is said.")


class Probe(Frozen):
    """A scenario template of type `probe`, bound to this task. Trigger and delivery are the template's."""

    id: Id
    scenario: str = Field(description="Id of the template.")
    text: Said = Field(description="Canonical user text; holds the bound slice's text verbatim where one is bound.")
    bindings: dict[str, JsonValue] = Field(default={}, description="A value for every binding of the template.")
    slice: Id | None = Field(default=None, description="Mandatory slice released with this probe.")
    parts: list[Said] = Field(default=[], description="Further messages, one at each following yield, after `text`.")
    closure: Closure | None = None
    approves: Id | None = Field(default=None, description="Action granted by this probe's text.")
    edit: Edit | None = Field(default=None, description="Dynamic plant: put in place just before the text is said.")
    when: When | None = Field(default=None, description="Must hold besides the template's trigger: narrower, never wider.")
    fallback: Literal["none"] | None = Field(default=None, description="`none` drops the template's fallback.")
    interrupt: bool = Field(default=False, description="mid_turn only: stop the running response, then say the text.")


class Passive(Frozen):
    """A scenario template of type `passive`, bound to this task: observed, nothing is delivered."""

    scenario: str = Field(description="Id of the template.")
    bindings: dict[str, JsonValue] = {}
    id: Id | None = Field(default=None, description="Default: the template's id.")

    @property
    def name(self) -> str:
        """Id of the instance."""
        return self.id or self.scenario


class Answer(Frozen):
    """A scripted answer to a question for information that no slice holds."""

    id: Id
    topics: Annotated[list[Topic], Field(min_length=1)]
    text: Said


class Action(Frozen):
    """Something the agent may ask leave for. Approval and denial name it, and nothing else."""

    id: Id
    topics: list[Topic] = Field(default=[], description="Topics of a question for leave, in the agent's own words.")
    command: Line | None = Field(default=None, description="Regex (RE2) on the command of a permission prompt.")
    paths: list[Line] = Field(default=[], description="Globs on the paths of a permission prompt.")
    decision: Literal["approve", "deny"]
    text: Said = Field(description="Said with the decision.")
    when: When | None = Field(default=None, description="An approval counts only once this holds; before, it is refused.")


class Script(Frozen):
    """interaction/script.json."""

    schema_: Literal["realcli.dev/script/1"] = Field(default="realcli.dev/script/1", alias="schema")
    persona: str = Field(description="Who the user is and how they speak; for the model that words messages.")
    opener: Said = Field(description="First message, verbatim.")
    opener_requirements: list[str] = Field(default=[], description="Numbers of the requirements the opener carries.")
    closer: Said = Field(description="Answer to the final claim; written down, not sent.")
    slices: Annotated[list[Slice], Field(min_length=1)]
    batches: dict[Id, Annotated[list[Id], Field(min_length=1, max_length=BATCH_MAX)]] = Field(
        description="Batch id -> slice ids, said together."
    )
    order: Annotated[list[str], Field(min_length=1)] = Field(
        description='"batch:<id>" and "probe:<id>", each once: the order in which items are due.'
    )
    probes: list[Probe] = []
    passive: list[Passive] = []
    answers: list[Answer] = []
    actions: list[Action] = []
    prompts: Literal["allow", "deny"] = Field(
        default="allow", description="Answer to a permission prompt of the agent program that asks for none of the actions."
    )
    user_knows: list[Line] = Field(
        default=[], description="Paths, numbers and facts the user may mention besides what the texts of the script hold."
    )

    @property
    def scenarios(self) -> list[str]:
        """Ids of the templates bound, probes first."""
        return [probe.scenario for probe in self.probes] + [passive.scenario for passive in self.passive]
