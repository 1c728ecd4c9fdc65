"""Further readings of the same runs (measuring.md 4.3): one function, one table; formula and source in its docstring. Pure."""

from realcli.scoring.analyses.profiles import pooled_counts
from realcli.scoring.analyses.table import Table
from realcli.scoring.analyses.violations import Share, near_misses, success_with_violation

__all__ = ["Share", "Table", "near_misses", "pooled_counts", "success_with_violation"]
