"""Scripts of the stub kubelet whose pods get into trouble by a seed, and always the same pod into the same trouble."""

from __future__ import annotations

import random

from realcli.api.termination import Result
from tests.support.stub_kubelet import Act, Seen, happy, say


class Troubles:
    """A share of the pods ends without a result, as providers, storage and judges make them; never more than a trial may have.

    What a pod meets follows from the seed and its name, not from when it runs, so a run can be repeated.
    """

    def __init__(self, seed: int, share: float = 0.25) -> None:
        self.seed = seed
        self.share = share
        self._met: set[tuple[str, str]] = set()

    def __call__(self, seen: Seen) -> Act | None:
        rng = random.Random(f"{self.seed}/{seen.name if seen.trial else seen.role}")
        if rng.random() > self.share:
            return self._well(seen)
        match seen.role:
            case "work" if seen.attempt in {"1", "2"} and seen.sealed is None:
                reason = rng.choice(["ProviderUnavailable", "SimulatorFailed", "SessionLost"])
                return Act(say("Work", Result.WORK_INVALID, reason=reason, message="a trouble of the test"))
            case "verify" if seen.sealed is not None and not seen.name.endswith("-v3"):
                return Act(say("Verify", Result.REFUSED, reason="StorageUnavailable", message="503"))
            case "judge" if (seen.namespace, seen.name) not in self._met and len(self._met) < 2:
                self._met.add((seen.namespace, seen.name))
                return Act(say("Judge", Result.REFUSED, reason="ProviderUnavailable", message="529"))
        return self._well(seen)

    def _well(self, seen: Seen) -> Act:
        """As it is without trouble, with a reward that is not the same for every trial."""
        act = happy(seen)
        if seen.role != "verify" or seen.sealed is None:
            return act
        reward = random.Random(f"{self.seed}/{seen.trial}").choice(["0", "0.5", "1"])
        verdict = {"reason": "Completed", "workEnd": "Completed", "reward": reward, "checks": {"passed": 1, "total": 8}}
        return Act(say("Verify", Result.VERDICT, seal=seen.own_seal, workSeal=seen.sealed, **verdict))
