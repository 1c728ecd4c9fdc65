"""What the models cannot say of the two kinds: CEL rules, list types, printer columns, selectable fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from realcli.api.agents import PROGRAMS, Permissions
from realcli.api.base import Frozen
from realcli.api.models import APIS, Api, Model
from realcli.api.sweep import IMMUTABLE, MUTABLE, MUTABLE_OF_MODELS, SweepSpec
from realcli.api.sweepstatus import SweepStatus
from realcli.api.trial import TrialSpec, TrialStatus

Schema = dict[str, Any]

NAME_PATTERN: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class Rule(NamedTuple):
    """One CEL rule. `message` tells a person what to do."""

    rule: str
    message: str

    def dump(self) -> Schema:
        """An entry of x-kubernetes-validations."""
        return {"rule": self.rule, "message": self.message}


class Column(NamedTuple):
    """One printer column."""

    name: str
    type: str
    path: str
    description: str = ""
    priority: int = 0


class Definition(NamedTuple):
    """Everything of a CRD that the models cannot say."""

    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    description: str
    spec: type[Frozen]
    status: type[Frozen]
    rules: Mapping[str, tuple[Rule, ...]]  # path from the root, "" for the root itself
    list_maps: Mapping[str, str]  # path -> key
    sets: tuple[str, ...]
    status_default: Schema | None
    columns: tuple[Column, ...]
    selectable: tuple[str, ...]
    atomic: tuple[str, ...] = ()
    """Objects that one writer writes as a whole."""


NAME_RULES: Final = (
    Rule(
        "self.metadata.name.size() <= 40", "metadata.name may have at most 40 characters, so that all names made from it fit 63"
    ),
    Rule(
        f"self.metadata.name.matches('{NAME_PATTERN}')",
        "metadata.name may hold lower case letters, digits and '-' only: pods and Jobs are named after it",
    ),
)

ITSELF_RULE: Final = Rule(
    "!has(self.spec.from) || !has(self.spec.from.sweep) || self.spec.from.sweep != self.metadata.name",
    "from.sweep is this sweep itself, which would wait for its own end: name the one whose runs are judged again",
)

LIMIT_RULE: Final = Rule(
    "duration(self) >= duration('1s') && duration(self) <= duration('720h')",
    "a limit has to be from 1s to 720h: a shorter one ends every trial, a longer one fits no pod",
)
LIMITS: Final = ("exec.deadline", "collab.deadline", "pending", "setup", "verify", "spoolHold")

HTTP_RULE: Final = Rule(
    "self.url.startsWith('https://') || self.insecureHttp == 'InCluster'",
    "http:// sends the key in clear text: use https://, or insecureHttp: InCluster for a Service in this cluster",
)
BASE_URL_RULES: Final[dict[Api, tuple[Rule, ...]]] = {
    "anthropic": (
        Rule(
            "!self.url.matches('/v1/*$')", "url is the base URL of the Anthropic API: leave out /v1 at its end, the agent adds it"
        ),
    ),
    "responses": (),
    "chat": (),
}


def _same(model: type[Frozen], but: Collection[str]) -> str:
    """CEL: every field of ``model`` is as it was, but for those."""
    parts = []
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if alias in but:
            continue
        same = f"self.{alias} == oldSelf.{alias}"
        if not field.is_required() and field.default is None:
            same = f"has(self.{alias}) == has(oldSelf.{alias}) && (!has(self.{alias}) || {same})"
        parts.append(same)
    return " && ".join(parts)


MODEL_RULES: Final = {
    "spec.models": (Rule("self.size() == oldSelf.size() && self.all(m, oldSelf.exists(o, o.name == m.name))", IMMUTABLE),),
    "spec.models[]": (Rule(_same(Model, MUTABLE_OF_MODELS), IMMUTABLE),),
}
"""A list map is compared entry by entry, so that one field of an entry may change."""

FROM_RULES: Final = (
    Rule(
        "has(self.from) == has(oldSelf.from) && (!has(self.from) || self.from == oldSelf.from)",
        f"from: {IMMUTABLE}",
    ),
    Rule(
        "has(self.from) || (self.agents.size() > 0 && self.models.size() > 0)",
        "give agents and models; without them only a sweep with from can be planned",
    ),
    Rule("has(self.from) || has(self.benchmark.source)", "benchmark.source is missing: s3://bucket/path of a published version"),
    Rule(
        "!has(self.from) || (self.agents.size() == 0 && self.models.size() == 0)",
        "leave agents and models out: with from they are those of its source",
    ),
    Rule(
        "!has(self.from) || !has(self.budget)",
        "leave budget out: no agent runs in a sweep with from; judge.budget bounds what judging costs",
    ),
    Rule(
        "!has(self.from) || 'Verify' in self.from.phases || self.retryInvalid == 0",
        "retryInvalid renews nothing here: with from and phases [Judge] the trials are the source's; raise it there, then make "
        "a new sweep",
    ),
)
"""`from` may be absent, so that nothing but a rule of the whole spec sees it come or go."""

SWEEP: Final = Definition(
    kind="BenchmarkSweep",
    plural="benchmarksweeps",
    singular="benchmarksweep",
    short_names=("sweep", "sweeps", "sw"),
    categories=("all", "realcli"),
    description="A sweep: a benchmark run with every agent x model, in EXEC and COLLAB, several times.",
    spec=SweepSpec,
    status=SweepStatus,
    rules={
        "": (*NAME_RULES, ITSELF_RULE),
        "spec": (
            *FROM_RULES,
            *(
                Rule(
                    f"!self.agents.exists(a, (has(a.program) ? a.program : a.name) == '{program}')"
                    f" || self.models.all(m, has(m.endpoints.{facts.api}))",
                    f"{program} speaks the {facts.api} API: every model needs endpoints.{facts.api}",
                )
                for program, facts in PROGRAMS.items()
            ),
            Rule(
                "!has(self.limits.trialBudget) || self.models.all(m, has(m.prices))",
                "limits.trialBudget needs models[].prices of every model: without a price no cost is known",
            ),
            Rule(
                "!has(self.budget) || !has(self.budget.usd) || self.models.all(m, has(m.prices))",
                "budget.usd needs models[].prices of every model: without a price no cost is known; or give budget.tokens",
            ),
            Rule(
                "self.simulatedUser.mode != 'Model' || has(self.simulatedUser.model)",
                "mode: Model needs simulatedUser.model, the model that words",
            ),
        ),
        "spec.from": (
            Rule("has(self.sweep) != has(self.uri)", "give either sweep or uri"),
            Rule("!has(self.lockDigest) || has(self.uri)", "lockDigest goes with uri; of a sweep its status says the digest"),
            Rule("'Judge' in self.phases", "phases is [Verify, Judge] or [Judge]: what is verified again is judged again"),
        ),
        "spec.agents[]": (
            Rule(
                f"has(self.program) || self.name in [{', '.join(repr(program) for program in PROGRAMS)}]",
                f"program is missing: it may be left out only where name is the program's ({', '.join(PROGRAMS)})",
            ),
            *(
                Rule(
                    f"(has(self.program) ? self.program : self.name) != '{program}'"
                    f" || self.permissions in {list(facts.permissions)}",
                    f"{program} knows permissions {', '.join(facts.permissions)}",
                )
                for program, facts in PROGRAMS.items()
                if len(facts.permissions) < len(Permissions)
            ),
        ),
        "spec.agents[].files": (
            Rule(
                "has(self.source) != has(self.configMapRef)",
                "give either source (with digest) or configMapRef",
            ),
            Rule("has(self.source) == has(self.digest)", "source and digest go together: the archive is pinned by its sha256"),
        ),
        "spec.agents[].mcpServers[].env[]": (Rule("has(self.value) != has(self.secretRef)", "give either value or secretRef"),),
        **{
            f"{place}.endpoints.{api}": (HTTP_RULE, *BASE_URL_RULES[api])
            for place in ("spec.models[]", "spec.simulatedUser.model", "spec.judge.model")
            for api in APIS
        },
        "spec.pods.labels": (
            Rule(
                "self.all(k, !k.matches('^(realcli[.]dev|app[.]kubernetes[.]io|kueue[.]x-k8s[.]io)/'))",
                "labels of realcli.dev, app.kubernetes.io and kueue.x-k8s.io are the operator's: use queueName for the queue",
            ),
        ),
        "spec.pods.annotations": (
            Rule("self.all(k, !k.startsWith('realcli.dev/'))", "annotations of realcli.dev are the operator's"),
        ),
        "spec.pods.tolerations[]": (
            Rule("has(self.key) || self.operator == 'Exists'", "a toleration without key needs operator: Exists"),
        ),
        "spec.retryInvalid": (
            Rule("self >= oldSelf", "retryInvalid only goes up: each step runs the repeats again that ended Invalid"),
        ),
        "spec.cancel": (Rule("!oldSelf || self", "cancel is final: make a new sweep"),),
        "spec.budget": (Rule("has(self.usd) || has(self.tokens)", "give usd, tokens or both"),),
        "spec.judge": (
            Rule("!has(self.budget) || has(self.model)", "judge.budget without judge.model: give the model that judges"),
            Rule(
                "!has(self.budget) || !has(self.budget.usd) || (has(self.model) && has(self.model.prices))",
                "judge.budget.usd needs judge.model.prices: without a price no cost is known; or give budget.tokens",
            ),
        ),
        "spec.judge.budget": (Rule("has(self.usd) != has(self.tokens)", "give either usd or tokens"),),
        "spec.judge.model.endpoints": (
            Rule(
                "has(self.chat) || has(self.anthropic) || has(self.responses)",
                "the judge's model needs endpoints.chat, endpoints.anthropic or endpoints.responses",
            ),
        ),
        "spec.simulatedUser.model.endpoints": (
            Rule(
                "has(self.anthropic) || has(self.chat)", "the simulated user's model needs endpoints.anthropic or endpoints.chat"
            ),
        ),
        **{f"spec.limits.{name}": (LIMIT_RULE,) for name in LIMITS},
        **MODEL_RULES,
        **{
            f"spec.{name}": (Rule("self == oldSelf", IMMUTABLE),)
            for name in SweepSpec.aliases()
            if name not in (*MUTABLE, "from") and f"spec.{name}" not in MODEL_RULES
        },
    },
    list_maps={
        "spec.agents": "name",
        "spec.models": "name",
        "spec.agents[].mcpServers": "name",
        "spec.agents[].toolImages": "mountPath",
        "status.conditions": "type",
        "status.scores": "configuration",
    },
    sets=("spec.modes", "spec.from.phases"),
    status_default=None,
    columns=(
        Column("State", "string", ".status.state", "Summary of the conditions."),
        Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].reason', "Proven, or what keeps it from going on."),
        Column("Trials", "string", ".status.trials", "Terminal and all trials."),
        Column("Valid", "integer", ".status.counts.sealed", "Valid trials."),
        Column("Invalid", "integer", ".status.counts.invalid", "Invalid trials."),
        Column("Withdrawn", "integer", ".status.counts.tasksWithdrawn", "Tasks left out: their own tests are broken.", 1),
        Column("Cost", "string", ".status.cost", "US dollars of the trials so far; ≥ where attempts left no count."),
        Column("R-EXEC", "string", ".status.rExec", "R of EXEC, where there is one configuration."),
        Column("R-COLLAB", "string", ".status.rCollab", "R of COLLAB, where there is one configuration."),
        Column("S", "string", ".status.s", "S; ~ marks S_rate or a partial S."),
        Column("J", "string", ".status.j", "J."),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
    selectable=(),
)

TRIAL: Final = Definition(
    kind="Trial",
    plural="trials",
    singular="trial",
    short_names=("tr",),
    categories=("realcli",),
    description="A trial: one repeat of (configuration, task, mode) of a sweep. Made by the operator.",
    spec=TrialSpec,
    status=TrialStatus,
    rules={"spec": (Rule("self == oldSelf", "spec of a Trial is immutable: it is a cell of the frozen plan"),)},
    list_maps={"status.conditions": "type"},
    sets=(),
    status_default={"phase": "Pending"},  # no write is needed to show a trial that has not started
    columns=(
        Column("Task", "string", ".spec.task"),
        Column("Mode", "string", ".spec.mode"),
        Column("Repeat", "integer", ".spec.repeat"),
        Column("Attempt", "integer", ".status.attempt"),
        Column("Phase", "string", ".status.phase"),
        Column("Reason", "string", ".status.reason", "The outcome, or why it waits."),
        Column("Reward", "string", ".status.reward"),
        Column("Turns", "integer", ".status.turns"),
        Column("Age", "date", ".metadata.creationTimestamp"),
        Column("Configuration", "string", ".spec.configuration", priority=1),
        Column("Cost", "string", ".status.costUSD", "US dollars by the sweep's prices.", priority=1),
        Column("Node", "string", ".status.node", priority=1),
    ),
    selectable=(".spec.sweep", ".spec.configuration", ".spec.task", ".spec.mode", ".status.phase"),
    # The operator alone writes them, and whole: keeping who owns which field costs the API server a fifth of each write.
    atomic=("spec", "status"),
)

DEFINITIONS: Final = (SWEEP, TRIAL)
