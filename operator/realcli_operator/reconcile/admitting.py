"""Of a sweep's step: what it takes, who has to say yes, who may start, and what keeps the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from realcli.api.forecasting import forecast
from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweepstatus import Resolved
from realcli_operator.reconcile.admission import Admission, Bounds, admit
from realcli_operator.reconcile.breaker import Breaker, breaker_of
from realcli_operator.reconcile.concurrency import asked_caps, shown, throttle_ends, throttled_caps
from realcli_operator.reconcile.conditions import find, is_true, without
from realcli_operator.reconcile.confirming import confirmation, is_dearer
from realcli_operator.reconcile.measured import due, measured
from realcli_operator.reconcile.names import plan_job
from realcli_operator.reconcile.plans import Note
from realcli_operator.reconcile.recent import HELD_BACK, left_until, owned_lanes
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.spending import spending, usd_text
from realcli_operator.reconcile.sweepstatus import of_cluster
from realcli_operator.reconcile.sweepstep import SweepStep


class Admitting(SweepStep):
    """A sweep whose trials start."""

    def _admission(self, plan: FrozenPlan, rows: Rows) -> Admission:
        """Who may start, and why not more."""
        spec = self.facts.spec
        # How others fared matters to the breaker where some failed.
        ends = rows.newest_ends(self.policy.recent_ends) if rows.failing else []
        owned = owned_lanes(plan, spec.models)
        breaker = breaker_of(plan, rows.open.values(), ends, self.now, self.policy, +rows.sealed, owned)
        throttled = throttled_caps(plan, rows, throttle_ends(rows, spec, self.policy), spec, self.policy)
        self.spent = self._spending(rows)
        held = self.suspended or self.cancelled or self.spent or self.unconfirmed
        holders = frozenset(row.trial for row in self.status.controls if row.end is None)
        caps = {**asked_caps(plan, spec), **throttled}
        bounds = Bounds(spec.parallelism, caps, breaker, held=held, holders=holders, withdrawn=self.withdrawn, owned=owned)
        admission = admit(plan, rows, self.facts.granted, bounds, self.now, self.policy)
        self.draft.grants, self.draft.broken, self.draft.avoid = admission.grants, admission.broken, breaker.nodes
        self.draft.delays += [admission.next_due, breaker.again]
        self._degraded(breaker)
        granted = sorted(row.ordinal for row in rows.open.values() if row.name in admission.grants and row.refused)
        if granted:
            self.blocked = ("ConfigurationError", f"{rows[granted[0]].refused}; it is tried again every minute")
        resolved = Resolved(parallelism=spec.parallelism, concurrency=shown(throttled), **of_cluster(plan))
        self.status = self.status.model_copy(update={"resolved": resolved})
        return admission

    def _spending(self, rows: Rows) -> bool:
        """Whether the budget is spent; the status says what is."""
        if self.facts.spec.from_ is not None:  # what its trials cost was counted where they ran
            return False
        found = spending(rows.spent, self.facts.spec)
        self.status = self.status.model_copy(
            update={
                "cost": found.column,
                "cost_usd": None if found.usd is None else usd_text(found.usd),
                "tokens": found.tokens,
                "uncounted_attempts": found.uncounted,
            }
        )
        over = found.exhausted(self.facts.spec)
        known = is_true(self.status.conditions, "BudgetExhausted")
        if over is not None:
            reason, text = over[0], f"{over[1]}: nothing new starts, what runs finishes; raise spec.budget to go on"
            if not known:
                self.draft.events.append(Note("Warning", "BudgetExhausted", text))
            self.condition("BudgetExhausted", "True", reason, text)
        elif known:
            self.condition("BudgetExhausted", "False", "Raised", "")
        return over is not None

    def _mismatched(self, rows: Rows, admission: Admission) -> Iterator[str]:
        """Waiting trials whose status says something else than what keeps them."""
        for row in rows.open.values():
            if row.phase is not Phase.PENDING or left_until(row.retry_after, self.now, self.policy.max_backoff) > 0:
                continue
            shown = row.reason if row.reason in HELD_BACK else None
            held = "Suspended" if self.suspended else "BreakerOpen" if row.name in admission.broken else None
            if shown != held:
                yield row.name

    def _degraded(self, breaker: Breaker) -> None:
        """The condition says where nothing starts, and why."""
        known = find(self.status.conditions, "Degraded")
        if breaker.open:
            lanes = [breaker.open[lane].describe(self.policy.probe_interval) for lane in sorted(breaker.open)]
            text = "; ".join(lanes)
            if known is None or known.status != "True":
                self.draft.events.append(Note("Warning", "BreakerOpen", text[:1000]))
            self.condition("Degraded", "True", "BreakerOpen", text)
        elif known is not None and known.status == "True":
            self.draft.events.append(Note("Normal", "BreakerClosed", "attempts go well again; everything may start"))
            self.condition("Degraded", "False", "Recovered", "")

    def _forecast(self, plan: FrozenPlan, rows: Rows) -> None:
        """What it takes, as far as that is known; where that is much, a person has to say yes."""
        ended = sum(rows.phases[(mode, Phase.SEALED)] for mode in plan.modes)
        before, known = self.status.forecast, self.status.forecast
        edited = self.facts.status.observed_generation != self.facts.sweep.generation  # a budget, parallelism
        if known is None or edited or (not plan.judged_only and due(known.basis, ended, plan.size)):
            known = forecast(plan, self.facts.spec, measured(rows), ended)
            self.status = self.status.model_copy(update={"forecast": known})
        if not self.policy.confirm_above.asks:  # any more
            self.status = self.status.model_copy(update={"conditions": without(self.status.conditions, "Confirmed")})
            return
        asked_already = find(self.status.conditions, "Confirmed")
        held = asked_already is not None and asked_already.status == "False"
        begun = bool(rows) or any(name != plan_job(self.name) for name in self.facts.jobs)
        begun = begun and not held and not (edited and before is not None and is_dearer(known, before))
        place = self.facts.sweep.namespace, self.name
        asked = confirmation(known, self.policy.confirm_above, self.facts.spec, plan.content_digest(), *place, begun=begun)
        if asked is None:
            return
        self.unconfirmed = not asked.given
        if self.unconfirmed and not held:
            self.draft.events.append(Note("Warning", "ConfirmationNeeded", asked.message[:1000]))
        self.condition("Confirmed", "False" if self.unconfirmed else "True", asked.reason, asked.message)
