"""200 corruptions of real ledgers, each with the one name it has to be given; their clean twins are given none."""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import Any

import pytest

from realcli.ledger import chain, segments, verify
from realcli.ledger.seals import WorkSeal
from realcli.ledger.verify import Report, verify_attempt
from realcli.storage.local import LocalStore
from tests.support.attempts import finish, make_attempt, tell
from tests.support.corruptions import MUTATORS, SEAL, VERIFY, Files, Scene, reseal

CASES = 200
TWINS = 4


class Memory:
    """The files of an attempt."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def sha256(self, name: str) -> tuple[str, int] | None:
        data = self.files.get(name)
        return None if data is None else (hashlib.sha256(data).hexdigest(), len(data))


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Files]]:
    """(root, files) of attempts written and sealed by the session's own code."""
    folder = tmp_path_factory.mktemp("corpus")
    store = LocalStore(folder / "store")
    found = []
    for number in range(TWINS + 1):

        async def make(number: int = number) -> str:
            attempt = make_attempt(folder / f"spool-{number}", store, ordinal=number, segment_bytes=1500 + 300 * number)
            tell(attempt, random.Random(number), turns=5 + number)
            assert await finish(attempt, store)
            return attempt.trial.paths.root

        root = asyncio.run(make())
        found.append((root, {i.key.removeprefix(root + "/"): store.get(i.key) for i in store.list(root + "/")}))
    return found


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def check(files: Files, root: str, anchors: Files | None = None) -> Report:
    given = [digest(anchors[name]) for name in (SEAL, VERIFY)] if anchors is not None else [None, None]
    return verify_attempt(Memory(files), root, *given)


def test_clean_twins_have_no_findings(sealed: list[tuple[str, Files]]) -> None:
    for root, files in sealed:
        report = check(files, root, files)
        assert report.findings == []
        assert report.events == sum(data.count(b"\n") for name, data in files.items() if name.startswith("ledger/"))
        assert len([name for name in files if name.startswith("ledger/")]) > 5


def misnamed(sealed: list[tuple[str, Files]], number: int) -> str | None:
    """Make corruption `number` and verify; what is wrong with the names it was given, None if nothing is."""
    name = sorted(MUTATORS)[number % len(MUTATORS)]
    root, clean = sealed[number % TWINS]
    scene = Scene(random.Random(number), dict(clean), sealed[number % TWINS + 1][1])
    expected = MUTATORS[name](scene)
    assert scene.files != clean, f"{name} did nothing"
    report = check(scene.files, root)
    if expected.anchor:
        if report.findings:
            return f"{name}: without an anchor nothing can tell, but there is {report.findings}"
        report = check(scene.files, root, clean)
    told = [str(finding) for finding in report.findings]
    if {finding.kind for finding in report.findings} != {expected.kind}:
        return f"{name}: expected {expected.kind} alone, found {told}"
    if not any(expected.where in finding.where for finding in report.findings):
        return f"{name}: expected it at {expected.where}, found {told}"
    return None


@pytest.mark.parametrize("number", range(CASES))
def test_a_corruption_has_its_name(sealed: list[tuple[str, Files]], number: int) -> None:
    assert misnamed(sealed, number) is None


@pytest.mark.parametrize(
    ("module", "part"),
    [
        (segments, "explain"), (segments, "astray"), (segments, "_end"), (segments, "_refs"), (chain, "_moved"),
        (chain, "_changed"), (chain, "_stands_for"), (verify, "_objects"), (verify, "_place"), (verify, "_verify_seal"),
    ],
)  # fmt: skip
def test_the_corpus_notices_a_verifier_that_lacks_a_part(
    sealed: list[tuple[str, Files]], monkeypatch: pytest.MonkeyPatch, module: Any, part: str
) -> None:
    """Green means something: whatever part of the verifier sees nothing any more, the corpus turns red."""
    monkeypatch.setattr(module, part, lambda *_: None if part in ("_end", "_stands_for") else [])
    assert any(misnamed(sealed, number) for number in range(CASES))


@pytest.mark.parametrize("field", ["events", "segments"])
def test_a_seal_that_counts_without_end_costs_no_time(sealed: list[tuple[str, Files]], field: str) -> None:
    root, clean = sealed[0]
    files = dict(clean)
    seal = WorkSeal.model_validate_json(files[SEAL])
    reseal(Scene(random.Random(0), files, {}), ledger=seal.ledger.model_copy(update={field: 10**15}))
    del files[sorted(name for name in files if name.startswith("ledger/"))[3]]
    assert check(files, root).findings


def test_a_ledger_that_is_damaged_all_over_is_read_once(sealed: list[tuple[str, Files]]) -> None:
    """Whoever can write to the bucket can make the work of who verifies it as large as the ledger, not larger."""
    lines = [chain.Line(f"s:{n}", n if n % 3 else None, f"{n}", f"{n + 1}" if n % 7 else "x") for n in range(1, 60_000)]
    found = list(chain.explain(lines[::-1][:20_000] + lines, chain.Gap(1, 10**12, "1", None, True)))
    assert len(found) > 20_000


def test_every_corruption_is_made_several_times_and() -> None:
    assert len(MUTATORS) * 4 <= CASES
