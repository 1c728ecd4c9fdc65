"""The environment of the operator: what the chart sets, and the message for everything it might set wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from realcli_operator.faults import FaultPoint, Faults
from realcli_operator.reconcile.confirming import ConfirmAbove
from realcli_operator.settings import Settings, SettingsError, Use

GIVEN = {
    "REALCLI_IMAGE_SESSION": "session:1",
    "REALCLI_IMAGE_JUDGE": "judge:1",
    "REALCLI_IMAGE_TOOLKIT": "toolkit:1",
    "REALCLI_AGENT_IMAGES": '{"claude-code": {"2.1.140": "agent:1", "2.1.141": "agent:2"}}',
}


def test_the_smallest_environment() -> None:
    settings = Settings.from_environment(GIVEN)
    assert settings.images.agents == {"claude-code/2.1.140": "agent:1", "claude-code/2.1.141": "agent:2"}
    assert (settings.image_volumes, settings.user_namespaces, settings.namespaces) == (Use.AUTO, Use.AUTO, ())
    assert (settings.pull_policy, settings.writes_per_second, settings.fault) == ("IfNotPresent", 50.0, None)


def test_a_full_environment() -> None:
    settings = Settings.from_environment(
        GIVEN
        | {
            "REALCLI_IMAGE_PULL_POLICY": "Never",
            "REALCLI_IMAGE_VOLUMES": "Always",
            "REALCLI_USER_NAMESPACES": "Never",
            "REALCLI_WATCH_NAMESPACES": "one, two,",
            "REALCLI_WRITES_PER_SECOND": "7.5",
            "REALCLI_JUDGES": "32",
            "REALCLI_CONFIRM_ABOVE_USD": "500.50",
            "REALCLI_LIVENESS": "",
            "REALCLI_KEEP_FAILED_PODS": "true",
        }
    )
    assert (settings.pull_policy, settings.image_volumes, settings.user_namespaces) == ("Never", Use.ALWAYS, Use.NEVER)
    assert (settings.namespaces, settings.writes_per_second, settings.liveness) == (("one", "two"), 7.5, None)
    assert settings.keep_failed_pods
    assert settings.confirm_above == ConfirmAbove(usd=Decimal("500.50"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("REALCLI_IMAGE_SESSION", "", "REALCLI_IMAGE_SESSION is not set"),
        ("REALCLI_AGENT_IMAGES", "[]", "REALCLI_AGENT_IMAGES is '\\[\\]'; expected JSON such as"),
        ("REALCLI_AGENT_IMAGES", '{"claude-code": {"2": ""}}', "claude-code/2 names no image"),
        ("REALCLI_IMAGE_VOLUMES", "Yes", "expected one of Auto, Always, Never"),
        ("REALCLI_IMAGE_PULL_POLICY", "Sometimes", "expected one of Always, IfNotPresent, Never"),
        ("REALCLI_WRITES_PER_SECOND", "0", "expected a number greater than 0"),
        ("REALCLI_JUDGES", "0", "expected a whole number from 1"),
        ("REALCLI_JUDGES", "2.5", "expected a whole number from 1"),
        ("REALCLI_CONFIRM_ABOVE_USD", "much", "expected US dollars, a decimal such as 500"),
        ("REALCLI_CONFIRM_ABOVE_POD_HOURS", "-1", "expected hours, a decimal such as 2000"),
        ("REALCLI_LOG_LEVEL", "LOUD", "expected one of DEBUG"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Settings.from_environment(GIVEN | {name: value})


def test_faults_are_for_tests_only() -> None:
    wanted = GIVEN | {"REALCLI_FAULT_POINT": "after-pod"}
    assert Settings.from_environment(wanted).fault is None
    assert Settings.from_environment(wanted | {"REALCLI_ALLOW_FAULTS": "1"}).fault is FaultPoint.POD
    with pytest.raises(SettingsError, match="expected one of after-trial"):
        Settings.from_environment(GIVEN | {"REALCLI_FAULT_POINT": "later", "REALCLI_ALLOW_FAULTS": "1"})


def test_a_fault_is_a_kill_at_its_point_alone() -> None:
    Faults().reached(FaultPoint.POD)
    code = (
        "from realcli_operator.faults import FaultPoint, Faults; f = Faults(FaultPoint.POD); "
        "f.reached(FaultPoint.STATUS); print('alive', flush=True); f.reached(FaultPoint.POD); print('dead')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (-9, "alive\n")


def test_the_process_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "realcli_operator"], capture_output=True, text=True, check=False, timeout=60, env={}
    )
    assert done.returncode == 2
    assert "REALCLI_IMAGE_SESSION is not set" in done.stderr


def test_the_chart_sets_what_the_operator_reads_and_nothing_else() -> None:
    """A value that reaches nobody is a setting that is ignored silently."""
    read: set[str] = set()

    class Recorder(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            read.add(key)
            return super().get(key, default)

    Settings.from_environment(Recorder(GIVEN))
    chart = Path(__file__).parents[3] / "charts/realcli/templates/deployment.yaml"
    given = set(re.findall(r"name: (REALCLI_[A-Z_]+)", chart.read_text()))
    not_for_users = {"REALCLI_ALLOW_FAULTS", "REALCLI_KUBECONFIG", "REALCLI_LIVENESS", "REALCLI_WORKERS"}
    assert given == read - not_for_users
