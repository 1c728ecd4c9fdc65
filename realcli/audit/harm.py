"""sim_no_harmful_deviation: none of the six found what plausibly changed a verdict or the outcome."""

from __future__ import annotations

from typing import Final

from realcli.audit.model import Deviation, SimCheck

NAME: Final = "sim_no_harmful_deviation"


def check(six: list[SimCheck]) -> SimCheck:
    """0 by one harmful deviation; unscored while the harm of one, or one of the six, is not known; else 1."""
    found = [one for sim in six for one in sim.deviations]
    harmful = [one for one in found if one.harmful]
    if harmful:
        by = "judge" if all(one.by == "judge" for one in harmful) else "program"
        return SimCheck(check=NAME, verdict="0", by=by, reason=_reason(harmful), deviations=harmful)
    unknown = [one for one in found if one.harmful is None]
    if unknown:
        return SimCheck(check=NAME, verdict="unscored", by="none", reason=f"nobody has said whether it harmed: {unknown[0].what}")
    open_ = [sim.check for sim in six if sim.verdict == "unscored"]
    if open_:
        return SimCheck(check=NAME, verdict="unscored", by="none", reason=f"unscored: {', '.join(open_)}")
    judged = any(sim.by == "judge" for sim in six) or any(one.by == "judge" for one in found)
    return SimCheck(check=NAME, verdict="1", by="judge" if judged else "program")


def _reason(found: list[Deviation]) -> str:
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return found[0].what + more
