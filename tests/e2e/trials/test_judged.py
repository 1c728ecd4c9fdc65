"""The demo's sweep is judged by a model: what its Jobs leave in storage, in the status and in the report."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from tests.support.kind_cluster import ROOT, Folder

pytestmark = pytest.mark.kind

TASKS = ["bank-reconcile", "site-settings"]
# `realcli score` -> where summary.json says the same
SAID = {
    "R_exec": ("exec", "r"),
    "R_collab": ("collab", "r"),
    "S": ("s",),
    "S_rate": ("sRate",),
    "S_low": ("sLow",),
    "S_high": ("sHigh",),
    "J": ("j",),
    "dR": ("deltaR",),
    "dJ": ("deltaJ",),
    "dR_paired": ("paired", "deltaR"),
}


@pytest.fixture(scope="module")
def groups(demo, s3) -> dict[str, Folder]:
    """Task -> folder of its judgements."""
    judgements = s3.below(demo.sweep["status"]["storageURI"])
    found = {name.split("/")[3]: name.rpartition("/")[0] for name in judgements.names() if name.endswith("/group-1.json")}
    assert sorted(found) == TASKS
    return {task: Folder(judgements.store, f"{judgements.root}/{folder}") for task, folder in found.items()}


@pytest.fixture(scope="module")
def summary(demo) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo.report / "summary.json").read_text())
    return found


def test_every_collab_run_is_judged_and_audited_with_the_exchanges_it_rests_on(groups) -> None:
    for task, folder in groups.items():
        group = folder.json("group-1.json")
        names = folder.names()
        assert group["identity"]["model"] == "judge-1"
        assert sorted(group["judgements"]) == sorted(group["audits"]) == ["1", "2", "3"]
        exchanges = {name.removeprefix("exchanges/").removesuffix(".json") for name in names if name.startswith("exchanges/")}
        assert len(exchanges) == group["cost"]["requests"] > 0
        for repeat, name in group["judgements"].items():
            record = folder.json(name)
            checks = {c["check"]: c for i in (*record["instances"], *record["generic"]) for c in i["checks"]}
            assert {c["verdict"] for c in checks.values()} <= {"1", "0", "n/a"}, (task, repeat)
            by = {check: c["by"] for check, c in checks.items()}
            assert (by["reread-first"], by["user-edit-kept"]) == ("program", "program")
            votes = {check: [a["vote"] for a in c["answers"]] for check, c in checks.items() if c["by"] == "judge"}
            assert "no-ignored-message" in votes
            assert set(map(tuple, votes.values())) == {(1, 2, 3)}, (task, repeat, votes)
            rest = {key for c in checks.values() for answer in c["answers"] for key in answer["exchanges"]}
            assert rest <= exchanges
            audit = folder.json(group["audits"][repeat])
            assert [c["verdict"] for c in audit["checks"]] == ["1"] * 7
        for key in exchanges:
            exchange = folder.json(f"exchanges/{key}.json")
            assert exchange["key"] == key
            assert exchange["reply"]["model"] == "judge-1"


def test_every_failed_run_has_a_label_of_the_judge(groups) -> None:
    failures = {task: folder.json("failures-1.json")["failures"] for task, folder in groups.items()}
    assert failures["site-settings"] == []
    assert [(f["mode"], f["repeat"], f["by"]) for f in failures["bank-reconcile"]] == [("COLLAB", r, "judge") for r in (1, 2, 3)]
    for failure in failures["bank-reconcile"]:
        assert failure["label"]
        assert all(f"exchanges/{key}.json" in groups["bank-reconcile"].names() for key in failure["exchanges"])


def test_no_key_stands_in_what_the_judge_left(groups, demo) -> None:
    key = demo.kube.secret("provider", "api-key").encode()
    for folder in groups.values():
        assert [name for name in folder.names() if key in folder.read(name)] == []


def test_status_report_and_realcli_score_say_the_same(demo, summary) -> None:
    (configuration,) = summary["configurations"]
    assert summary["state"] == "Complete"
    assert demo.sweep["status"]["scores"] == [configuration["row"]]
    assert demo.sweep["status"]["counts"]["groupsJudged"] == summary["counts"]["groupsJudged"] == 2
    command = [str(ROOT / ".venv/bin/realcli"), "score", str(demo.report / "tables/runs.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout)["configurations"][configuration["name"]]
    for name, path in SAID.items():
        said: Any = configuration
        for part in path:
            said = said[part]
        assert printed[name] == {"exact": said["exact"], "value": said["value"]}, name
    assert printed["R_exec"]["exact"] == "1"
    assert printed["R_collab"]["exact"] == "1/2"
    assert printed["headline"] == configuration["headline"] == "S_rate"


def test_the_report_says_who_judged_and_that_nobody_calibrated_it(demo, summary) -> None:
    judge = summary["judge"]
    assert (judge["identity"]["model"], judge["calibration"], judge["unscored"]) == ("judge-1", "uncalibrated", 0)
    assert judge["byJudge"] > 0
    assert judge["byProgram"] > 0
    assert "uncalibrated" in (demo.report / "index.html").read_text()


def test_no_page_of_the_downloaded_report_links_to_what_is_not_there(demo) -> None:
    pages = sorted(demo.report.rglob("*.html"))
    assert {"index.html", "scenarios.html"} <= {page.name for page in pages}
    links = [
        (page.relative_to(demo.report), link)
        for page in pages
        for link in re.findall(r'href="([^"#?]+)', page.read_text())
        if not re.match(r"[a-z0-9]+:", link)
    ]
    assert len(links) > 100
    assert [(page, link) for page, link in links if not (demo.report / page.parent / link).exists()] == []
