"""How scores are written for people: three decimals, `~` behind an S that is S_rate or partial (api.md)."""

from __future__ import annotations

from fractions import Fraction

from realcli.api.sweepstatus import ScoreRow
from realcli.scoring.aggregate import ConfigurationScores


def decimal(value: Fraction, digits: int = 3) -> str:
    """Half away from zero, exactly: Fraction(8, 15) -> "0.533"."""
    scaled = int(abs(value) * 10**digits + Fraction(1, 2))
    whole, rest = divmod(scaled, 10**digits)
    sign = "-" if value < 0 and scaled else ""
    return f"{sign}{whole}.{rest:0{digits}d}" if digits else f"{sign}{whole}"


def signed(value: Fraction, digits: int = 3) -> str:
    """The same with a sign, for differences: "+0.067", "-0.167", "0.000"."""
    text = decimal(value, digits)
    return "+" + text if value > 0 and float(text) else text


def mark(scores: ConfigurationScores) -> str:
    """What stands behind an S that is S_rate, or that does not rest on the whole tree."""
    return "~" if scores.s_partial or not scores.headline_s else ""


def score_row(scores: ConfigurationScores) -> ScoreRow:
    """The row of a configuration in the sweep's status. Absent where undefined."""
    headline = scores.headline
    return ScoreRow(
        configuration=scores.configuration,
        r_exec=_text(scores.r_exec),
        r_collab=_text(scores.r_collab),
        s=None if headline is None else decimal(headline) + mark(scores),
        j=_text(scores.headline_j),
    )


def _text(value: Fraction | None) -> str | None:
    return None if value is None else decimal(value)
