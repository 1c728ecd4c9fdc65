"""Words of kubelet and control plane that no recording has."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.outcomes import Cause
from realcli_operator.reconcile.endfacts import facts_of
from realcli_operator.reconcile.endmodel import Work
from realcli_operator.reconcile.ends import end_of


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("OutOfpods", "NodePressure"),
        ("OutOfephemeral-storage", "NodePressure"),
        ("OutOfnvidia.com/gpu", "NodePressure"),
        ("UnexpectedAdmissionError", "NodePressure"),
        ("NodePorts", "NodePressure"),
        ("TopologyAffinityError", "NodePressure"),
        ("AppArmor", "ConfigurationError"),
        ("PodOSNotSupported", "ConfigurationError"),
        ("PodOSSelectorNodeLabelDoesNotMatch", "ConfigurationError"),
        ("NodeShutdown", "Drained"),
        ("Shutdown", "Drained"),
        ("Terminated", "Drained"),
        ("NodeLost", "NodeLost"),
        ("Preempting", "Preempted"),
        ("outofcpu", "PodLost"),
        ("Evicted2", "PodLost"),
    ],
)
def test_reason_of_a_pod_that_never_ran(a: Any, word: str, reason: str) -> None:
    pod = a.pod(phase="Failed", reason=word, message="so it is", containers=())
    end = end_of(facts_of(pod, Work.WORK))
    assert (end.reason, end.gap) == (reason, reason == "PodLost")
    assert word in end.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The node was low on resource: pids. ", "NodePressure"),
        ("The node was low on resource: ephemeral-storage. Container agent was using 9Gi, request is 64Mi", "NodePressure"),
        ("The node had condition: [PIDPressure]. ", "NodePressure"),
        ('Usage of EmptyDir volume "shm-agent" exceeds the limit "64Mi". ', "AgentDiskLimit"),
        ('Usage of EmptyDir volume "files-agent" exceeds the limit "1Mi". ', "AgentDiskLimit"),
        ('Usage of EmptyDir volume "toolkit" exceeds the limit "2Gi". ', "SessionLost"),
        ('Usage of EmptyDir volume "tmp" exceeds the limit "1Gi". ', "SessionLost"),
        ('Container prepare exceeded its local ephemeral storage limit "2Gi". ', "SessionLost"),
        ("words of tomorrow", "NodePressure"),
    ],
)
def test_message_of_an_eviction(a: Any, text: str, reason: str) -> None:
    assert end_of(facts_of(a.ended(reason="Evicted", message=text), Work.WORK)).reason == reason


def test_what_exceeds_a_limit_before_the_agent_begins_is_not_its_doing(a: Any) -> None:
    """Init containers copy; the kubelet says PodInitializing of the others, as it also does once it has forgotten them."""
    waiting = {"reason": "PodInitializing"}
    containers = (a.container("agent", "waiting", **waiting), a.container("session", "waiting", **waiting))
    text = "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. "

    def evicted(initialized: str) -> Any:
        conditions = (a.condition("Initialized", initialized),)
        return end_of(
            facts_of(
                a.pod(phase="Failed", reason="Evicted", message=text, containers=containers, conditions=conditions), Work.WORK
            )
        )

    assert (evicted("False").reason, evicted("False").retry) == ("SessionLost", True)
    assert (evicted("True").reason, evicted("True").retry) == ("AgentDiskLimit", False)


@pytest.mark.parametrize("word", ["ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"])
def test_words_for_an_image_that_does_not_come(a: Any, word: str) -> None:
    end = end_of(facts_of(a.waiting(reason=word), Work.WORK))
    assert (end.reason, end.cause) == ("ImageUnavailable", Cause.CONFIGURATION)


def test_a_pod_that_was_collected_before_it_had_a_node(a: Any) -> None:
    gone = (a.condition("DisruptionTarget", reason="DeletionByPodGC"),)
    pod = a.pod(phase="Failed", node=None, start_time=None, containers=(), conditions=gone)
    end = end_of(facts_of(pod, Work.WORK))
    assert (end.reason, end.cause) == ("PodLost", Cause.PERSON)
    assert end_of(facts_of(a.ended(conditions=gone), Work.WORK)).reason == "NodeLost"


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_condition_that_is_not_true_says_nothing(a: Any, status: str) -> None:
    for kind, reason in (("DisruptionTarget", "PreemptionByScheduler"), ("TerminationTarget", "x")):
        pod = a.ended(conditions=(a.condition(kind, status, reason),))
        assert end_of(facts_of(pod, Work.WORK)).reason == "SessionLost"
