from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.benchmark.instruction import requirements
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.suite import load_suite
from realcli.trajectory.patterns import path_matches
from realcli_runner.globs import Globs, Step

Change = Callable[[str, str, str], None]
ChangeScript = Callable[[Callable[[Any], None]], None]


def problems(directory: Path) -> list[str]:
    with pytest.raises(BenchmarkError) as caught:
        load_suite(directory)
    assert str(caught.value) == "\n".join(str(problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_the_starter_suite_is_valid(suite_dir: Path) -> None:
    suite = load_suite(suite_dir)
    assert (suite.config.name, suite.config.version) == ("starter", "1.1.0")
    assert [task.name for task in suite.tasks] == ["bank-reconcile", "site-settings"]
    assert len(requirements(suite.tasks[0].instruction)) == 18


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (
            "task.toml",
            '"no-network"',
            '"public"',
            "environment.network_mode: input should be 'no-network' (found 'public'); write network_mode",
        ),
        (
            "task.toml",
            'schema_version = "1.4"',
            'schema_version = "1.1"',
            "schema_version: input should be '1.4' (found '1.1'); write schema_version",
        ),
        (
            "task.toml",
            'docker_image = "realcli.local/tasks/site-settings:1.0.0"\n',
            "",
            "environment.docker_image: is missing; name the image",
        ),
        ("task.toml", "cpus = 0.5", "cpus = 0.5\ngpus = 1", "environment.gpus: is not a key this version knows; remove it"),
        ("task.toml", "cpus = 0.5", "cpus = 0", "environment.cpus: input should be greater than 0 (found 0)"),
        (
            "task.toml",
            "[verifier]",
            "[agent]\ntimeout_sec = 60\n\n[verifier]",
            "agent.timeout_sec: is not a key this version knows; remove it; the agent's time limits",
        ),
        ("task.toml", 'workdir = "/app"', 'workdir = "app/"', "environment.workdir: value error, 'app/' is not an absolute"),
        ("task.toml", 'information_structure = "additive"\n', "", "metadata.realcli.information_structure: is missing; write"),
        (
            "task.toml",
            'trust = "artifacts"',
            'trust = "inplace"',
            "metadata.realcli.trust: input should be 'artifacts' or 'system' (found 'inplace'); write",
        ),
        (
            "task.toml",
            'libc = "glibc"',
            'libc = "glibc"\nmock_hosts = ["a.example"]',
            "hosts: a.example is in mock_hosts of task.toml; say here what it answers",
        ),
        ("task.toml", 'category = "system operations"\n', "", "metadata.category: is missing; name one"),
        ("task.toml", 'category = "system operations"\n', 'category = "all"\n', '"all" is the name of the rows over all of them'),
        (
            "task.toml",
            'artifacts = ["/app/site.ini", "/app/summary.json"]',
            "artifacts = []",
            "artifacts: list should have at least 1 item",
        ),
        (
            "task.toml",
            'artifacts = ["/app/site.ini", "/app/summary.json"]',
            'artifacts = ["/app/summary.json"]',
            "artifacts: FILE '/app/site.ini' of probe 'touched' is no part of the result",
        ),
        (
            "task.toml",
            'watch = ["/app/site.ini", "/app/summary.json"]',
            "watch = []",
            "metadata.realcli.watch: FILE '/app/site.ini' of probe 'touched' is missing",
        ),
        ("task.toml", "[task]", "[task", "task.toml: line"),
        ("instruction.md", "5. In", "In", "slice 'log-level': carries requirement 5, which instruction.md has not"),
        (
            "instruction.md",
            "6. Everything",
            "7. Everything",
            "requirement 7: is out of sequence; number the requirements 1, 2, 3",
        ),
        (
            "instruction.md",
            "6. Everything",
            "6. A new demand.\n7. Everything",
            "requirement 7: is carried by nothing; let exactly one slice",
        ),
        ("instruction.md", "to `warning`", "to `error`", "slice 'log-level': does not say `error` of requirement 5"),
        ("instruction.md", "to `warning`", "to `error`", "slice 'log-level': says `warning`, which is not in instruction.md"),
        (
            "interaction/script.json",
            '"requirements": ["2"]',
            '"requirements": ["1"]',
            "requirement 1: is carried by slice 'instance' and slice 'listen'",
        ),
        ("interaction/script.json", '"requirements": ["2"]', '"requirements": []', "slice 'listen': carries no requirement"),
        ("interaction/script.json", '"persona"', '"persona', "interaction/script.json: "),
        ("interaction/script.json", '"closer"', '"close"', "interaction/script.json: close: is not a key this version knows"),
        (
            "interaction/oracle_contract.json",
            '"paths": ["/app/site.ini", ',
            '"paths": [',
            "paths: FILE '/app/site.ini' of probe 'touched' is missing",
        ),
        (
            "interaction/oracle_contract.json",
            '"paths": ["/app/site.ini", ',
            '"paths": ["app", ',
            "paths.0: value error, 'app' is not an absolute",
        ),
        (
            "interaction/oracle_contract.json",
            '"paths": ["/app/site.ini", ',
            '"paths": ["/app//site.ini", ',
            "paths.0: value error, '/app//site.ini' is not an absolute, normal path",
        ),
        (
            "task.toml",
            'watch = ["/app/site.ini", "/app/summary.json"]',
            'watch = ["/*.ini"]',
            "metadata.realcli.watch: FILE '/app/site.ini' of probe 'touched' is missing",
        ),
        (
            "environment/app/site.ini",
            "[log]",
            "[log]\n# Note for Jo: the disk of the new host is smaller,",
            "bindings.EDIT_MARKER: '# Note for Jo: the disk of the new host is smaller,' stands in environment/app/site.ini too",
        ),
        (
            "run/app/data/services.csv",
            "name,port,state",
            "# Note for Jo: the disk of the new host is smaller,\nname,port,state",
            "bindings.EDIT_MARKER: '# Note for Jo: the disk of the new host is smaller,' stands in run/app/data/services.csv too",
        ),
        (
            "instruction.md",
            "Our small web site",
            "Our small web site `/srv/site`",
            "opener: does not say `/srv/site`, which instruction.md says outside its requirements",
        ),
        (
            "interaction/oracle_contract.json",
            '"# Note for Jo: the disk of the new host is smaller,",',
            "",
            "EDIT_MARKER '# Note for Jo",
        ),
        (
            "run/app/data/services.csv",
            "${run.instance_id}",
            "${run.instance}",
            "run/app/data/services.csv: ${run.instance} is no value of run.json",
        ),
    ],
)
def test_a_fault_is_named_with_file_field_and_remedy(
    suite_dir: Path, change: Change, file: str, old: str, new: str, expected: str
) -> None:
    change(file, old, new)
    found = [text for text in problems(suite_dir) if expected in text]
    assert found, problems(suite_dir)
    assert found[0].startswith("tasks/site-settings/")
    assert "; " in found[0]  # says what to do


def _edit(script: Any, *lines: str) -> None:
    probe = script["probes"][0]
    probe["edit"]["insert"] = list(lines)
    probe["bindings"] |= {"USER_EDIT": probe["edit"], "EDIT_MARKER": lines[0]}


def _add_undecidable_probe(script: Any) -> None:
    names = ("FLAW", "METHOD", "ALT", "AREA", "DECISION_ORACLE")
    script["probes"].append(
        {"id": "flawed", "scenario": "s.dissent.flawed-approach", "text": "Do it otherwise.",
         "closure": {"text": "No, keep it."}, "bindings": dict.fromkeys(names, "/app/site.ini")}
    )  # fmt: skip
    script["order"].append("probe:flawed")


def _drop_binding(script: Any) -> None:
    del script["probes"][0]["bindings"]["EDIT_MARKER"]


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda s: s["batches"]["site"].append("nothing"), "batches.site: slice 'nothing' does not exist"),
        (lambda s: s["batches"]["site"].remove("listen"), "slices.listen: is released 0 times"),
        (lambda s: s["batches"]["summary"].append("log-level"), "slices.log-level: is released 2 times"),
        (
            lambda s: (s["batches"]["site"].remove("listen"), s["slices"][1].update(mandatory=False)),
            "slice 'listen': carries a requirement that only those hear who ask for it",
        ),
        (lambda s: s["batches"].update(site=["a", "b", "c", "d", "e"]), "batches.site: list should have at most 4 items"),
        (lambda s: s["order"].remove("batch:summary"), "order: 'batch:summary' is missing"),
        (lambda s: s["order"].append("batch:summary"), "order: 'batch:summary' stands 2 times"),
        (lambda s: s["order"].append("batch:none"), "order: 'batch:none' names nothing"),
        (lambda s: s["order"].remove("probe:touched"), "order: 'probe:touched' is missing"),
        (lambda s: s["slices"].append(s["slices"][0]), "slices: 'instance' stands 2 times"),
        (lambda s: s["probes"][0].update(scenario="or.verify.nothing"), "scenario 'or.verify.nothing' is not in the catalogue"),
        (lambda s: s["probes"][0].update(scenario="u.plan.outline-before-action"), "'probe:touched' is delivered opener; remove"),
        (lambda s: s["probes"][0].update(scenario="or.stuck.failure-loop"), "is a passive template; bind it in `passive`"),
        (_drop_binding, "bindings.EDIT_MARKER: is not filled; bind it: a line of USER_EDIT"),
        (lambda s: s["probes"][0]["bindings"].update(FILE=""), "bindings.FILE: is empty"),
        (lambda s: s["probes"][0]["bindings"].update(OTHER=1), "bindings.OTHER: is no binding of or.verify.concurrent-edit"),
        (lambda s: s["probes"][0]["edit"].update(insert=["x"]), "bindings.USER_EDIT: is not the probe's edit"),
        (lambda s: s["probes"][0]["edit"].update(insert=["x"]), "bindings.EDIT_MARKER: is no line of the edit"),
        (lambda s: s["probes"][0].pop("edit"), "edit: has no edit, but the plant of or.verify.concurrent-edit is dynamic"),
        (lambda s: s["probes"][0]["edit"].update(path="/app/x.ini"), "edit.path: is '/app/x.ini'; edit '/app/site.ini', the"),
        (lambda s: s["probes"][0].update(slice="listen"), "slice: is 'listen'; write 'log-level', as the trigger says"),
        (lambda s: s["probes"][0].update(text="Well."), "its text does not hold the text of slice 'log-level'"),
        (
            lambda s: s["probes"][0].update(text="# Note for Jo: the disk of the new host is smaller, " + s["probes"][0]["text"]),
            "stands in probe 'touched' too; insert a line that stands nowhere else",
        ),
        (lambda s: _edit(s, "}"), "bindings.EDIT_MARKER: '}' is too short to be told from other output"),
        (
            lambda s: s["probes"][0]["edit"].update(insert=["a\nb"]),
            "probes.0.edit.insert.0: value error, 'a\\nb' is not one line",
        ),
        (lambda s: s["probes"][0]["edit"].update(insert=[" "]), "probes.0.edit.insert.0: value error, ' ' is not one line"),
        (lambda s: s["probes"][0]["edit"].update(path="/app/./site.ini"), "probes.0.edit.path: value error"),
        (lambda s: s["slices"][0].update(text=" "), "slices.0.text: string should match"),
        (lambda s: s.update(opener=""), "opener: string should match"),
        (
            _add_undecidable_probe,
            "probe 'flawed': no judge of this version takes it: probe flawed, scenario s.dissent",
        ),
        (lambda s: s.update(opener=s["opener"] + " And `/app/other.ini`."), "the opener: says `/app/other.ini`, which is not in"),
    ],
)
def test_a_script_that_does_not_fit_is_refused(
    suite_dir: Path, change_script: ChangeScript, work: Callable[[Any], None], expected: str
) -> None:
    change_script(work)
    assert [text for text in problems(suite_dir) if expected in text], problems(suite_dir)


def test_all_faults_of_all_files_are_told_at_once(suite_dir: Path, change: Change) -> None:
    change("task.toml", '"no-network"', '"public"')
    change("instruction.md", "to `warning`", "to `error`")
    (suite_dir / "benchmark.toml").write_text('name = "starter"\nversion = "one"\n')
    (suite_dir / "tasks/bank-reconcile/tests/test.sh").unlink()
    (suite_dir / "tasks/bank-reconcile/notes.md").write_text("")
    found = "\n".join(problems(suite_dir))
    for expected in (
        "benchmark.toml: version: string should match pattern",
        "tasks/bank-reconcile/tests/test.sh: is missing; add it",
        "tasks/bank-reconcile/notes.md: is no part of a task; remove it",
        "tasks/site-settings/task.toml: environment.network_mode",
    ):
        assert expected in found


@pytest.mark.parametrize(
    ("glob", "covered"),
    [("/app/site.ini", True), ("/app/*", True), ("/**", True), ("/**/site.ini", True), ("/app/**", True),
     ("/app/**/site.ini", True), ("/app/[s]ite.???", True), ("/*", False), ("/app", False), ("/app/*/site.ini", False),
     ("/app/site.ini/*", False)],
)  # fmt: skip
def test_a_watch_covers_what_the_runner_finds(glob: str, covered: bool) -> None:
    assert path_matches("/app/site.ini", [glob]) is covered
    parts = b"/app/site.ini".split(b"/")[1:]
    step = Step(False, Globs([glob.encode()]).start)
    for part in parts:
        step = Globs([glob.encode()]).step(step.below, part)
    assert step.matched is covered  # the runner itself


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5000], ids=["deep", "long number"])
def test_toml_that_python_cannot_hold_is_a_problem_of_the_file(suite_dir: Path, text: str) -> None:
    (suite_dir / "tasks/site-settings/task.toml").write_text(text)
    (found,) = problems(suite_dir)
    assert found.startswith("tasks/site-settings/task.toml: cannot be read as TOML: ")


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "interaction/script.json", "interaction/oracle_contract.json"])
def test_a_file_of_a_terabyte_is_not_read(suite_dir: Path, name: str) -> None:
    with (suite_dir / "tasks/site-settings" / name).open("r+b") as file:
        file.truncate(1 << 40)
    (found,) = problems(suite_dir)
    assert found.startswith(f"tasks/site-settings/{name}: has 1099511627776 bytes, at most 4194304 are read")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\u202eb", "a\udcff"])
def test_a_name_that_a_terminal_would_obey_is_refused_and_shown_escaped(suite_dir: Path, name: str) -> None:
    (suite_dir / "tasks/site-settings/tests" / name).write_text("x")
    (found,) = problems(suite_dir)
    assert found.startswith(f"tasks/site-settings/.: {'tests/' + name!a} is a name with characters that are not printable")


def test_a_name_beside_the_task_is_shown_escaped(suite_dir: Path) -> None:
    (suite_dir / "tasks/site-settings/\x1b[2J").write_text("x")
    (found,) = problems(suite_dir)
    assert found.startswith("tasks/site-settings/\\x1b[2J: is no part of a task")


def test_more_than_a_bundle_holds_is_refused_unread(suite_dir: Path) -> None:
    with (suite_dir / "tasks/site-settings/tests/big").open("wb") as file:
        file.truncate(1 << 40)
    (found,) = problems(suite_dir)
    assert "too much for one bundle, which holds 256 MiB; the largest is tests/big with 1099511627776 bytes: shorten it" in found


def test_folders_without_end_are_refused(suite_dir: Path) -> None:
    place = os.open(suite_dir / "tasks/site-settings/tests", os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d" * 20, dir_fd=place)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    (found,) = problems(suite_dir)
    assert "is a path of more than 1024 bytes" in found
    subprocess.run(["rm", "-rf", suite_dir], check=True)  # what removes the test's folder does not get so deep


def test_links_are_refused(suite_dir: Path) -> None:
    (suite_dir / "tasks/site-settings/tests/more").symlink_to("/etc/passwd")
    assert any("tests/more is a link or a special file" in text for text in problems(suite_dir))


def test_an_empty_directory_says_what_is_expected(tmp_path: Path) -> None:
    found = "\n".join(problems(tmp_path))
    assert "benchmark.toml: is missing; add it with name and version" in found
    assert "tasks: holds no task; add tasks/<name>/ in Harbor's layout" in found
