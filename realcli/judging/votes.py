"""From the accepted answers of several votes to one verdict. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

JudgeVerdict = Literal["1", "0", "na"]


class Decision(NamedTuple):
    """What the votes come to; `verdict` None: unscored, and why."""

    verdict: JudgeVerdict | None
    why: str


def decide(verdicts: Sequence[JudgeVerdict], votes: int, troubles: Sequence[str] = ()) -> Decision:
    """The verdict more than half of the accepted answers give. `votes`: how many were asked for; `troubles`: why some failed.

    No such majority, or fewer than half of the votes accepted, is unscored, never 0.
    """
    lost = f" ({'; '.join(sorted(set(troubles)))})" if troubles else ""
    if 2 * len(verdicts) < votes or not verdicts:
        return Decision(None, f"{len(verdicts)} of {votes} answers of the judge count{lost}")
    verdict, count = Counter(verdicts).most_common(1)[0]
    if 2 * count <= len(verdicts):
        shown = ", ".join(f"{number} x {name}" for name, number in sorted(Counter(verdicts).items()))
        return Decision(None, f"the votes have no majority: {shown}")
    return Decision(verdict, f"{count} of {len(verdicts)} votes say {verdict}")
