"""The generated files say what the suite proves, and the example of docs/adding-an-agent.md is the one that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conformance import matrix
from tests.integration.conformance.cases import CASES
from tests.integration.conformance.drivers import drivers

DOCS = matrix.DOCS
TOY = Path(__file__).parent / "toy"


def test_generated_docs_are_up_to_date() -> None:
    for path, content in matrix.files().items():
        assert path.read_text(encoding="utf-8") == content, f"{path} is old: python -m tests.integration.conformance.matrix"


def test_what_differs_is_explained() -> None:
    for driver in drivers().values():
        assert driver.differs.keys() <= CASES.keys()
        assert all(differs.why and differs.reference for differs in driver.differs.values())


@pytest.mark.parametrize("name", ["adapter.py", "program.py"])
def test_the_example_is_the_one_that_runs(name: str) -> None:
    code = (TOY / name).read_text(encoding="utf-8")
    assert f"```python\n{code}```" in (DOCS / "adding-an-agent.md").read_text(encoding="utf-8")
