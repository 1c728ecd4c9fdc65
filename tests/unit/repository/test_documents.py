"""What a person reads of this repository is whole: links lead somewhere, pages are found, versions agree, examples are valid."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.api.sweep import SweepSpec

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "benchmark/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)]*)?\)")
NAMED = re.compile(
    r"`((?:docs|examples|hack|benchmark|provider|bench|charts|crds|runner_image|simulator_image|operator|tests)/[\w./-]+)`"
)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_named_files_are_there(page: Path) -> None:
    text = page.read_text()
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    assert missing == []


def test_every_page_is_found_from_the_front() -> None:
    text = (ROOT / "README.md").read_text()
    linked = {(ROOT / link).resolve() for link in LINK.findall(text)}
    assert [named(page) for page in sorted((ROOT / "docs").glob("*.md")) if page not in linked] == []


def test_every_example_is_told_and_valid() -> None:
    told = (ROOT / "examples/README.md").read_text()
    found = sorted((ROOT / "examples").glob("*.yaml"))
    assert found
    for path in found:
        assert f"`{path.name}`" in told
        sweeps: list[dict[str, Any]] = [one for one in yaml.safe_load_all(path.read_text()) if one["kind"] == "BenchmarkSweep"]
        assert sweeps
        for sweep in sweeps:
            SweepSpec.model_validate(sweep["spec"])


def test_one_version_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((ROOT / "charts/realcli/Chart.yaml").read_text())
    images = yaml.safe_load((ROOT / "charts/realcli/values.yaml").read_text())["images"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert {image.rpartition(":")[2] for image in images.values() if isinstance(image, str) and ":" in image} == {version}
    newest = re.findall(r"^## \[(\d[^]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == version


def test_commands_of_the_makefile_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        used = {word for line in re.findall(r"`make ([a-z0-9 -]+)`", page.read_text()) for word in line.split()}
        assert used <= targets, named(page)


def test_no_page_names_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md", "*.yaml", "*.toml"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if name.startswith(("tests/", "hack/cluster/", "benchmark/")):
            continue
        text = (ROOT / name).read_text()
        assert not re.search(r"/root/\.|/home/[a-z]+/|/work/main", text), name
