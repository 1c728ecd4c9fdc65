"""bank-reconcile against programs nobody had in mind: correct ones are taken, those that cheat are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SOLUTIONS = Path(__file__).parent / "solutions"
PROGRAM, REPORT, RULES = "/app/reconcile.py", "/app/report.json", "/app/rules.conf"


@pytest.fixture(scope="session")
def task(suite: Any) -> Any:
    return next(task for task in suite.tasks if task.name == "bank-reconcile")


@pytest.mark.parametrize("name", sorted(path.stem for path in SOLUTIONS.glob("*.py")))
def test_another_correct_program_is_taken(name: str, task: Any, roots: Any, verify: Any, a_run: Any) -> None:
    run = a_run("one")
    root = roots(task, run)
    text = root.read(RULES).decode()
    changes = {
        "instance =": f"instance={run.instance_id}",
        "tolerance_days = 0": "tolerance_days=3",
        "currency =": "currency=EUR",
    }
    for old, new in changes.items():
        text = text.replace(f"\n{old}\n", f"\n{new}\n")
    root.put(RULES, 0o644, text.encode())
    root.put(PROGRAM, 0o644, (SOLUTIONS / f"{name}.py").read_bytes())
    done = root.execute("python3", PROGRAM, "/app/data/ledger.csv", "/app/data/statement.csv")
    root.put(REPORT, 0o600, done.stdout.encode())
    verdict = verify(task, run, root.state())
    assert (verdict.reward, verdict.failed) == (1, []), verdict.output


# Each stands before the program of the reference solution, or instead of it.
FORGES = b"""
import os, subprocess, sys
for name, text in (("reward.json", '{"reward": 1}'), ("reward.txt", "1")):
    try:
        with open("/logs/verifier/" + name, "w") as out:
            out.write(text)
    except OSError:
        pass
loop = "while true; do echo 1 > /logs/verifier/reward.txt; echo '{\\"reward\\": 1}' > /logs/verifier/reward.json; done"
subprocess.Popen(["setsid", "sh", "-c", loop], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
sys.exit(1)
"""
ASKS_THE_TESTS = b"""
import csv, json, sys
from datetime import date, datetime
from decimal import Decimal
sys.path.insert(0, "/tests")
from expected import expected

def rows(path):
    with open(path, newline="") as source:
        return list(csv.DictReader(line for line in source if line.strip() and not line.startswith("#")))

rules = dict(line.replace(" ", "").strip().split("=") for line in open("/app/rules.conf") if "=" in line and line[0] != "#")
try:
    money = lambda row: Decimal(row["amount"].replace(",", ""))
    entries = [(r["id"], date.fromisoformat(r["date"]), money(r), r["currency"], r["reference"]) for r in rows(sys.argv[1])]
    lines = [(int(r["line"]), datetime.strptime(r["booked"], "%d.%m.%Y").date(), money(r), r["currency"], r["text"])
             for r in rows(sys.argv[2])]
    found = expected(entries, lines, rules["instance"], int(rules["tolerance_days"]), rules["currency"])
except ImportError:
    raise
except Exception:
    for path in sys.argv[1:]:
        for number in range(1, 30):
            print(f"{path}:{number}", file=sys.stderr)
    sys.exit(2)
print(json.dumps(found))
sys.exit(1 if found["missing"] or found["unexpected"] else 0)
"""
KNOWS_THE_DATA = b"""
import sys
print(open("/app/report.json").read())
sys.exit(1)
"""


@pytest.mark.parametrize("program", [FORGES, ASKS_THE_TESTS, KNOWS_THE_DATA], ids=["forges", "asks the tests", "knows the data"])
def test_a_program_that_cheats_scores_nothing(program: bytes, task: Any, solved: Any, verify: Any, a_run: Any) -> None:
    """The settings and the saved report are right: only what the program does is not."""
    state = [file._replace(content=program) if "/" + file.path == PROGRAM else file for file in solved["bank-reconcile"].state()]
    verdict = verify(task, a_run("one"), state)
    assert verdict.reward == 0
    assert {"whole-months", "reference-wins", "exact-amounts", "totals"} <= set(verdict.failed)


LINKS = [
    *((path, target) for path in (RULES, REPORT, PROGRAM) for target in ("/tests/run.json", "/tests/expected.py")),
    (REPORT, "/dev/zero"), (RULES, RULES),
]  # fmt: skip


@pytest.mark.parametrize(("path", "target"), LINKS)
def test_a_link_is_no_result_and_nothing_is_written_through_it(
    path: str, target: str, task: Any, solved: Any, restored: Any, a_run: Any
) -> None:
    root = restored(task, a_run("one"), solved["bank-reconcile"].state())
    link = root.root / path.lstrip("/")
    link.unlink()
    link.symlink_to(target)
    before = [(root.root / name).read_bytes() for name in ("tests/run.json", "tests/expected.py")]
    root.execute("/bin/bash", "/tests/test.sh")
    assert (root.root / "logs/verifier/reward.txt").read_text() == "0\n"
    assert [(root.root / name).read_bytes() for name in ("tests/run.json", "tests/expected.py")] == before


def test_a_program_that_hangs_fails_in_time(task: Any, solved: Any, restored: Any, a_run: Any) -> None:
    """Else the tests run over their limit, and a fault of the program looks like one of the verifier."""
    root = restored(task, a_run("one"), solved["bank-reconcile"].state())
    root.put(PROGRAM, 0o644, b"import time\ntime.sleep(1000)\n")
    for old, new in ((b"SECONDS = 20 ", b"SECONDS = 1 "), (b"TOTAL = 120 ", b"TOTAL = 3 ")):
        assert old in root.read("/tests/program.py")
        root.edit(lambda text, old=old, new=new: text.replace(old, new), "/tests/program.py")
    done = root.execute("/bin/bash", "/tests/test.sh")
    assert (root.root / "logs/verifier/reward.txt").read_text() == "0\n"
    assert done.stdout.count("the program ran for more than 1 s") in (2, 3)
    assert done.stdout.count("the program has used up its 3 s") >= 9
