"""How a verify or control pod ended, in a word."""

from __future__ import annotations

from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.endfacts import Work, facts_of
from realcli_operator.reconcile.endfacts import describe as describe
from realcli_operator.reconcile.endfacts import session_message as session_message
from realcli_operator.reconcile.ends import end_of
from realcli_operator.reconcile.ends import is_fault as is_fault


def verify_end(pod: PodView) -> str:
    """How a verify pod ended by the facts alone."""
    return end_of(facts_of(pod, Work.VERIFY)).reason
