"""A planned sweep on a real object store and a real provider, both processes that can be stopped and killed at any moment."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from realcli.api.termination import Result
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from realcli_cli.local.pods import Ended
from realcli_cli.local.provider import ScriptedProvider
from tests.conftest import Weed
from tests.integration.disturb.streams import Stream
from tests.integration.session.harness import Pod, Sweep
from tests.integration.session.moments import COMMANDS, Moments

Who = Literal["provider", "storage"]
How = Literal["stop", "kill"]
PHASES = ("setup", "work", "quiesce", "seal", "verify")
SCRIPT = """
version: 1
rules:
- {when: {opening: /app/site.ini}, policy: "realcli_provider.policies.site_settings:work"}
- {policy: "realcli_provider.policies.told:work"}
faults: [{when: {side: null}, fault: {slow: 0.02}}]        # so that there are moments inside of an answer
"""


class Disturbance(NamedTuple):
    """What happens when: after event number `event` of the ledger (commands not counted), or `seconds` into verify."""

    phase: str
    who: Who
    how: How
    event: int
    seconds: float


@dataclass
class Stand:
    """All of it."""

    sweep: Sweep
    provider: ScriptedProvider
    weed: Weed
    ordinal: int
    program: str
    attempts: int = 0
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Phase -> first and last event of the undisturbed run."""

    def run(self, disturbance: Disturbance | None = None) -> Stream:
        """The event stream of a new attempt, which has to end well.

        A program may give up on an answer that the provider cut in its middle. That attempt does not count, and as in a cluster
        the next one does.
        """
        self.attempts += 1
        number = ["--attempt", str(self.attempts)]
        with self.sweep.pod(self.ordinal, "work", *number) as pod:
            worked = self._ended(pod, disturbance if disturbance and disturbance.phase != "verify" else None)
        if (
            disturbance
            and disturbance.who == "provider"
            and worked.termination
            and worked.termination.reason == "ProviderUnavailable"
        ):
            assert "the provider cut the answer" in str(worked.termination.message)
            return self.run()
        with self.sweep.pod(self.ordinal, "verify", *number, "--verify", "1") as pod:
            verified = self._ended(pod, disturbance if disturbance and disturbance.phase == "verify" else None)
        ended_well(worked, verified)
        root = self.sweep.attempt(self.ordinal, self.attempts).root
        reader = StoreReader(self.sweep.store, root)
        report = verify_attempt(reader, root)
        assert report.ok, report.findings
        return Stream(reader, reader.events(), self.program)

    def learn(self) -> None:
        """The phases' events, from the first attempt."""
        events = [e for e in self.sweep.events(self.ordinal) if e.kind not in COMMANDS]
        starts = [(e.data["phase"], n) for n, e in enumerate(events, 1) if e.kind == "phase"] + [("end", len(events) + 1)]
        self.bounds = {str(name): (n, starts[i + 1][1] - 1) for i, (name, n) in enumerate(starts[:-1])}

    def choose(self, phase: str, seed: int) -> Disturbance:
        """By the seed. Quiesce and seal are over in a moment: they are disturbed from just before."""
        dice = random.Random(f"{phase} {seed}")
        first, last = self.bounds.get(phase, (1, 1))
        event = first - 1 if phase in ("quiesce", "seal") else dice.randint(first, last)
        who: Who = "storage" if phase in ("seal", "verify") else dice.choice(("provider", "storage"))
        return Disturbance(phase, who, dice.choice(("stop", "kill")), event, dice.random())

    def _ended(self, pod: Pod, disturbance: Disturbance | None) -> Ended:
        if disturbance is None:
            return pod.ended()
        thread = threading.Thread(target=self._disturb, args=(pod, disturbance))
        thread.start()
        try:
            return pod.ended()
        finally:
            thread.join()

    def _disturb(self, pod: Pod, disturbance: Disturbance) -> None:
        if disturbance.phase == "verify":
            time.sleep(disturbance.seconds)  # verify writes no ledger to see a moment by
        else:
            Moments(pod).wait(disturbance.event)
        part: dict[tuple[str, str], Callable[[], None]] = {
            ("provider", "stop"): self._stop_provider,
            ("provider", "kill"): self._kill_provider,
            ("storage", "stop"): self._stop_storage,
            ("storage", "kill"): self._kill_storage,
        }
        part[disturbance.who, disturbance.how]()

    # how long each lasts is the disturbance itself
    def _stop_provider(self) -> None:
        self.provider.pause(True)
        time.sleep(2)
        self.provider.pause(False)

    def _kill_provider(self) -> None:
        self.provider.kill()
        time.sleep(1)
        self.provider.start()

    def _stop_storage(self) -> None:
        assert self.weed.process is not None
        self.weed.process.send_signal(signal.SIGSTOP)
        time.sleep(4)
        self.weed.process.send_signal(signal.SIGCONT)

    def _kill_storage(self) -> None:
        self.weed.kill()
        time.sleep(1)
        self.weed.start()


def ended_well(worked: Ended, verified: Ended) -> None:
    """Completed, sealed, reward 1."""
    assert worked.termination is not None, worked.stderr
    assert (worked.termination.result, worked.termination.reason) == (Result.WORK_SEALED, "Completed"), worked.stderr
    assert verified.termination is not None, verified.stderr
    assert (verified.termination.result, verified.termination.reward) == (Result.VERDICT, "1"), verified.stderr
