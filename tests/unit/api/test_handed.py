"""A text in the environment, however long and of whatever characters."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import example, given, settings
from hypothesis import strategies as st

from realcli.api.handed import PART, parts, whole

LONG = st.builds(
    lambda text, times, lead: "a" * lead + text * times, st.text(min_size=1, max_size=9), st.just(60_000), st.integers(0, 4)
)


@settings(max_examples=25, deadline=None)
@given(st.text() | LONG)
@example("")
@example("x" * PART)
@example("x" * (PART + 1))
@example("x" + "é" * PART)
@example("𝄞" * PART)
def test_what_is_handed_over_comes_back(text: str) -> None:
    found = parts("GIVEN", text)
    assert whole({"OTHER": "1", **found}, "GIVEN") == text
    assert all(len(part.encode()) <= PART for part in found.values())
    assert next(iter(found)) == "GIVEN"


def test_a_short_one_is_one_variable() -> None:
    assert parts("GIVEN", "short") == {"GIVEN": "short"}
    assert whole({}, "GIVEN") == ""


def test_the_kernel_takes_it() -> None:
    """Half a megabyte, which no single variable holds."""
    text = "é" * 250_000
    program = "import os; from realcli.api.handed import whole; print(len(whole(os.environ, 'GIVEN')))"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | parts("GIVEN", text), capture_output=True, check=True)
    assert done.stdout.strip() == b"250000"
