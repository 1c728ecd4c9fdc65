"""Checker scripts with a real runner: each on a fresh copy of its snapshot, whatever the one before did."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from realcli.benchmark.models import Oracle
from realcli.wire.archive import END, Member, header, padding
from realcli_session.runner.port import ProcInfo, QuiesceReport
from realcli_session.verify.checkers import run_checkers
from realcli_session.verify.checks import Run, TakenSnapshot

SURVIVOR = ProcInfo(pid=7, ppid=1, pgid=7, sid=7, uid=0, state="D", start_ticks=1, argv=("x",))
SCRIPTS = {
    "same.sh": '#!/bin/sh\ntest "$(cat state)" = fresh || exit 1\necho spoilt >state; touch more; test "$1" = ""\n',
    "no.sh": "#!/bin/sh\necho not done >&2; exit 1\n",
    "maybe.sh": "#!/bin/sh\nexit 2\n",
    "odd.sh": "#!/bin/sh\nexit 9\n",
    "slow.sh": "#!/bin/sh\nsleep 1000 & setsid sleep 1000 & wait\n",
    "plain.sh": "exit 0\n",
    "run.sh": '#!/bin/sh\ngrep -q rc-1 "$REALCLI_CHECK_RUN" && test ! -e more\n',
    "left.sh": "#!/bin/sh\nfor p in /proc/[0-9]*; do read -r c <$p/comm || continue; test $c = sleep && exit 1; done; exit 0\n",
}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / "private" / "interaction" / "checks"
    folder.mkdir(parents=True)
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644 if name == "plain.sh" else 0o755)
    return tmp_path / "private"


async def test_each_script_has_its_own_state_and_its_own_end(pod, private: Path, tmp_path: Path) -> None:
    work = str(pod.work / "state-dir")
    base = work.lstrip("/").encode()
    archive = (
        header(Member(base, "dir", mode=0o755)) + header(Member(base + b"/state", "file", size=5)) + b"fresh" + padding(5) + END
    )
    (tmp_path / "s.tar.zst").write_bytes(zstandard.compress(archive))
    checkers = {name.removesuffix(".sh"): {"run": name, "timeout_sec": 2 if name == "slow.sh" else 30} for name in SCRIPTS}
    oracle = Oracle.model_validate({"schema": "realcli.dev/oracle/1", "paths": [work], "checkers": checkers})
    order = ["same", "same", "run", "no", "maybe", "odd", "slow", "left", "plain"]
    taken = TakenSnapshot(7, "0" * 64)
    runs = [Run("p", f"c{number}", "script", name, (), taken) for number, name in enumerate(order)]
    runs.append(Run("p", "c9", "script", "same", (), TakenSnapshot(8, "0" * 64)))
    runs.append(Run("p", "c10", "script", "gone", (), None, "is not declared"))

    async def fetch(snapshot: TakenSnapshot) -> Path:
        if snapshot.seq == 8:
            raise ValueError("it is not the one that was sealed")
        return tmp_path / "s.tar.zst"

    await pod.client.put_file(f"{work}/state", b"old")
    lines = await run_checkers(pod.client, runs, oracle, private, b'{"instanceId":"rc-1"}', work, fetch)
    assert [(line.check, line.outcome) for line in lines] == [
        ("c0", "pass"), ("c1", "pass"), ("c2", "pass"), ("c3", "fail"), ("c4", "undecided"), ("c5", "broken"), ("c6", "broken"),
        ("c7", "pass"), ("c8", "broken"), ("c9", "broken"), ("c10", "broken"),
    ]  # fmt: skip
    assert lines[3].detail == "no: not done"
    assert "killed after 2 s" in lines[6].detail
    assert lines[0].by_seq == 7
    await pod.client.run(["rm", "-rf", "/checks"], env={"PATH": "/bin"}, cwd="/", seconds=10)


@pytest.mark.parametrize("report", [QuiesceReport((), (), (), False), QuiesceReport((SURVIVOR,), (), (), False)])
async def test_no_script_runs_beside_what_could_not_be_stopped(report: QuiesceReport, private: Path, tmp_path: Path) -> None:
    class Haunted:
        """A runner that may do nothing but this."""

        async def quiesce(self, *, grace: float, kill: float) -> QuiesceReport:
            return report

    oracle = Oracle.model_validate({"schema": "realcli.dev/oracle/1", "paths": ["/x"], "checkers": {"no": {"run": "no.sh"}}})
    runs = [Run("p", "c", "script", "no", (), TakenSnapshot(7, "0" * 64))]

    async def fetch(_: TakenSnapshot) -> Path:
        return tmp_path

    (line,) = await run_checkers(Haunted(), runs, oracle, private, b"{}", "/", fetch)  # type: ignore[arg-type]
    assert (line.outcome, "could not be stopped" in line.detail) == ("broken", True)


async def test_a_runner_that_goes_leaves_broken_lines(pod, private: Path, tmp_path: Path) -> None:
    oracle = Oracle.model_validate({"schema": "realcli.dev/oracle/1", "paths": ["/x"], "checkers": {"no": {"run": "no.sh"}}})
    await pod.client.close()
    runs = [Run("p", "c", "script", "no", (), TakenSnapshot(7, "0" * 64))]

    async def fetch(_: TakenSnapshot) -> Path:
        return tmp_path

    (line,) = await run_checkers(pod.client, runs, oracle, private, b"{}", "/", fetch)
    assert line.outcome == "broken"
    assert "lost" in line.detail
