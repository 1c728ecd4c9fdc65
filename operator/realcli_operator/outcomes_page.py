"""docs/outcomes.md: the reasons a trial may have, and how the operator recognises the end of a pod. From the tables themselves.

python -m realcli_operator.outcomes_page --write | --check
"""

from __future__ import annotations

import sys
from typing import Final

from realcli.api.outcomes import OUTCOMES, Cause, Effect, Outcome, Phase
from realcli.generated import generate, table_header, table_row
from realcli_operator.reconcile.endrows import GAP, SECTIONS, Row
from realcli_operator.reconcile.ends import UNEXPLAINED

PAGE: Final = "docs/outcomes.md"
_EFFECTS: Final = {
    Effect.VERIFIED: ("Counts: verified", "The agent had its chance. The verifier judges the state it left."),
    Effect.AGENT: (
        "Counts: the agent spoilt it",
        "Verified if the state survived, else reward 0. Counted apart, never tried again.",
    ),
    Effect.RETRY: (
        "Invalid: tried again",
        "Nothing the agent can cause. A new attempt while `spec.retry.infrastructure` allows, after a back-off and away from a "
        "node that breaks them; then phase `Invalid`, without a reward. `spec.retryInvalid` renews such trials.",
    ),
    Effect.FINAL: (
        "Invalid: not tried again",
        "A new attempt would end the same way, or nobody wants one. A quota that is full for now and a Secret that is missing "
        "for a while are waited for, and end nothing. `spec.retryInvalid` renews such trials, but for those of a withdrawn task "
        "or a cancelled sweep.",
    ),
    Effect.HELD: ("No end at all", "We or the cluster held the trial or took its pod. No attempt is used up."),
}
_CAUSES: Final = {
    Cause.AGENT: "the agent",
    Cause.PROVIDER: "a model provider",
    Cause.STORAGE: "storage",
    Cause.CLUSTER: "the cluster",
    Cause.CONFIGURATION: "the configuration: the sweep, its Secrets and images, rules of the namespace",
    Cause.TASK: "the task: its image or its tests",
    Cause.PERSON: "a person",
    Cause.OPERATOR: "our own parts",
    Cause.UNKNOWN: "nobody knows",
}
_INTRODUCTION: Final = """\
# How trials end

Written by `python -m realcli_operator.outcomes_page --write` (`make generate`) from the tables of the programs; do not edit.

`status.reason` of a Trial is one of the reasons below, `status.workEnd` how its work pod ended; `kubectl describe trial` shows
both with a message. What the agent can cause always counts and is never tried again: a saboteur gets no more attempts than an
honest loser. What it cannot cause is never a reward, and never 0.
"""
_PHASES: Final = {
    Phase.PENDING: (
        "waits for its turn. Reason: none, `Suspended`, `BreakerOpen`, or how its last attempt ended (the next comes at "
        "`status.retryAfter`)",
        "nothing, or what the reason names; `kubectl describe sweep` says what holds the sweep",
    ),
    Phase.QUEUED: (
        "its pod waits for its queue (`spec.queueName`); bounded by nothing",
        "look at the queue; with `spec.suspend` no further pods are made",
    ),
    Phase.WORKING: (
        "its work pod starts or runs (`status.pod`)",
        "watch it: `realcli ledger tail TRIAL -n NAMESPACE`. A pod that is deleted by hand costs an attempt (`PodLost`)",
    ),
    Phase.VERIFYING: (
        "the work is sealed; its tests run in a pod of their own, or it waits for the control of its task (`status.awaiting`)",
        "wait",
    ),
    Phase.SEALED: ("ended, valid: it counts, with the reward that is shown", "read it: `realcli ledger cat TRIAL`, the report"),
    Phase.INVALID: (
        "ended without a reward, and left out of the scores",
        "mend what the reason names, then raise `spec.retryInvalid` ([which may be](sweep.md#invalid-repeats-and-broken-tasks))",
    ),
}
"""What a phase is, and what a person may do."""
_PHASES_INTRODUCTION: Final = """\
## Phases

`kubectl -n NAMESPACE get trials -l realcli.dev/sweep=NAME` shows phase and reason. Trials are the operator's: whatever a person
may change is a field of the sweep ([which](sweep.md#what-may-be-changed-while-it-runs)).
"""
_RECOGNISED: Final = """\
## How an end is recognised

When a pod has ended, is gone, or is given up, the first row that fits decides. *Said*: the reason that session or seal name.
Between a pod's end and the end of the attempt storage is asked once for a seal, wherever there may be one: what is sealed is the
truth.
"""


def page() -> str:
    """The whole page."""
    lines = [_INTRODUCTION, _PHASES_INTRODUCTION, *table_header("phase", ["what it means", "what you may do"])]
    lines += [table_row(f"`{phase}`", list(_PHASES[phase])) for phase in Phase]
    lines.append("")
    for effect, (title, text) in _EFFECTS.items():
        lines += [f"## {title}", "", text, "", *table_header("reason", ["what happened", "who can cause it"])]
        lines += [_outcome(outcome) for outcome in OUTCOMES if outcome.effect is effect]
        lines.append("")
    lines.append(_RECOGNISED)
    for title, rows in SECTIONS:
        lines += [f"### {title}", "", *table_header("row", ["recognised by", "reason", "caused by"])]
        lines += [_end(end) for end in rows]
        lines.append("")
    lines += [
        f"An end of the last kind (`{GAP}`) is a gap in this table. The trial's message has all its facts, an event "
        f"`{UNEXPLAINED}` says so, and the operator counts it in `realcli_unexplained_ends_total`; please report it.",
        "",
    ]
    return "\n".join(lines)


def _outcome(outcome: Outcome) -> str:
    return table_row(f"`{outcome.reason}`", [outcome.happened, _CAUSES[outcome.cause]])


def _end(end: Row) -> str:
    outcome = next((o for o in OUTCOMES if o.reason == end.reason), None)
    reason = f"`{end.reason}`" if isinstance(end.reason, str) else "said"
    cause = end.cause or (outcome.cause if outcome is not None else None)
    return table_row(end.name, [end.seen, reason, "as of the reason" if cause is None else _CAUSES[cause]])


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or say whether it is up to date."""
    return generate("realcli_operator.outcomes_page", "the tables of outcomes", lambda: {PAGE: page()}, arguments)


if __name__ == "__main__":
    sys.exit(main())
