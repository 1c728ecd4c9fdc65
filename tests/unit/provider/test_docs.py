"""The page on provider scripts: its example is a script."""

from __future__ import annotations

import re
from pathlib import Path

from realcli_provider.script import read_script

PAGE = Path(__file__).resolve().parents[3] / "docs/provider-script.md"


def test_the_complete_example_is_read(tmp_path: Path) -> None:
    found = re.search(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "script.yaml").write_text(found[1])
    script = read_script(tmp_path / "script.yaml")
    assert len(script.rules) == 2
    assert "--mode COLLAB --provider-script script.yaml" in PAGE.read_text()  # a question needs a user
