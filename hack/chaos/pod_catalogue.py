"""Every kind of end that `record_pods.py` records. Names are those of the files below tests/data/pods."""

from __future__ import annotations

from pod_ends_inside import INSIDE
from pod_ends_outside import OUTSIDE
from pod_kinds import Kind

KINDS: tuple[Kind, ...] = (*INSIDE, *OUTSIDE)
