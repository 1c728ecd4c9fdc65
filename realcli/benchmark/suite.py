"""A suite directory, read and checked as a whole: `load_suite(dir) -> Suite` or every problem at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field, StringConstraints, TypeAdapter, ValidationError

from realcli.api.base import POOLED, DnsLabel
from realcli.benchmark.bundles import File, read_tree
from realcli.benchmark.catalogue import Catalogue, load_catalogue
from realcli.benchmark.consistency import check_closure, check_markers, check_oracle
from realcli.benchmark.hosts import check_hosts
from realcli.benchmark.instances import check_evidence, check_passive, check_probes, check_watched
from realcli.benchmark.instruction import requirements
from realcli.benchmark.leaks import check_leak_terms
from realcli.benchmark.models import IndexTask, Oracle, Script
from realcli.benchmark.problems import BenchmarkError, Problem, from_validation
from realcli.benchmark.references import check_script
from realcli.benchmark.run_files import RUN, TRAPS, render
from realcli.benchmark.script import INSTRUCTION, ORACLE, SCRIPT
from realcli.benchmark.task_toml import REMEDIES, Section, TaskToml
from realcli.ledger.seals import RunJson

PUBLIC = ["task.toml", INSTRUCTION, "environment"]
PRIVATE = ["interaction", "run", "tests", "solution"]
_TEXTS = ("task.toml", INSTRUCTION, SCRIPT, ORACLE)
_MAX_TEXT = 4 << 20  # bytes of one of them
_REQUIRED = ["task.toml", INSTRUCTION, "environment/Dockerfile", SCRIPT, ORACLE, "tests/test.sh", "solution/solve.sh"]
_SAMPLE_RUN = RunJson(instance_id="rc-0000000000000000", nonce="0" * 64, seed=0)

M = TypeVar("M", bound=BaseModel)


class SuiteToml(Section):
    """benchmark.toml."""

    name: DnsLabel
    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$")]
    description: Annotated[str, Field(max_length=500)] = ""


class Task(NamedTuple):
    """One task as it lies on disk, valid."""

    name: str
    config: TaskToml
    instruction: str
    script: Script
    oracle: Oracle
    public: list[File]
    private: list[File]


class Suite(NamedTuple):
    """A valid suite; tasks sorted by name."""

    config: SuiteToml
    tasks: list[Task]


def load_suite(directory: Path, catalogue: Catalogue | None = None) -> Suite:
    """The suite in `directory`; BenchmarkError with all problems of all its files."""
    problems: list[Problem] = []
    config = _toml(directory, "benchmark.toml", SuiteToml, problems, {"version": 'write it as "1.0.0"'})
    folders = sorted(path for path in (directory / "tasks").glob("*") if path.is_dir())
    if not folders:
        problems.append(Problem("tasks", "", "holds no task", "add tasks/<name>/ in Harbor's layout"))
    tasks = [_task(path, catalogue or load_catalogue(), problems) for path in folders]
    if problems or config is None:
        raise BenchmarkError(problems)
    return Suite(config, [task for task in tasks if task is not None])


def index_task(task: Task, digest: str, public_bundle: str, private_bundle: str) -> IndexTask:
    """What index.json says of a task, given the digests of its bundles."""
    realcli = task.config.metadata.realcli
    return IndexTask(
        name=task.name,
        digest=digest,
        image=task.config.environment.docker_image,
        public_bundle=public_bundle,
        private_bundle=private_bundle,
        category=task.config.metadata.category,
        difficulty=realcli.difficulty,
        review=realcli.review,
        information_structure=realcli.information_structure,
        trust=realcli.trust,
        needs_setuid=realcli.needs_setuid,
        mock_hosts=sorted(realcli.mock_hosts),
        libc=realcli.libc,
        workdir=task.config.environment.workdir,
        artifacts=task.config.artifact_paths(),
        watch=list(realcli.watch),
        verifier_seconds=task.config.verifier.timeout_sec,
        agent_user=task.config.agent.user,
        resources=task.config.environment.resources(),
        scenarios=task.script.scenarios,
        requirements=len(requirements(task.instruction)),
        slices=len(task.script.slices),
    )


def _task(folder: Path, catalogue: Catalogue, problems: list[Problem]) -> Task | None:
    task, mine = check_task(folder, catalogue)
    problems += [problem._replace(file=f"tasks/{folder.name}/{problem.file}") for problem in mine]
    return task


def check_task(folder: Path, catalogue: Catalogue) -> tuple[Task | None, list[Problem]]:
    """One task's folder, and everything wrong with it; files relative to the folder. None: it could not be read."""
    mine: list[Problem] = []
    task = _read(folder, mine)
    if task is not None:
        mine += check_script(task.script)
        mine += check_closure(task.script, task.instruction)
        mine += check_probes(task.script, catalogue)
        mine += check_passive(task.script, catalogue)
        mine += check_evidence(task.script, task.oracle, catalogue)
        mine += check_watched(task.script, catalogue, task.config.metadata.realcli.watch)
        mine += check_leak_terms(task.script)
        mine += check_oracle(task.script, task.oracle, task.config.metadata.realcli.watch, task.config.artifact_paths())
        mine += check_markers(task.script, task.instruction, [*task.public, *task.private])
        mine += check_hosts(task.oracle, task.config.metadata.realcli.mock_hosts, task.private)
        mine += _check_run(task.private)
    return task, mine


def _read(folder: Path, problems: list[Problem]) -> Task | None:
    try:
        TypeAdapter(DnsLabel).validate_python(folder.name)
    except ValidationError:
        problems.append(Problem(".", "", f"{folder.name!r} is no task name", "use lower-case letters, digits and dashes"))
    if folder.name == POOLED:
        problems.append(Problem(".", "", f"{folder.name!r} is what tables call the row over all tasks", "give it another name"))
    for name in _REQUIRED:
        if not (folder / name).is_file():
            problems.append(Problem(name, "", "is missing", "add it (Harbor's layout and interaction/)"))
    for path in sorted(folder.iterdir()):
        if path.name not in {*PUBLIC, *PRIVATE}:
            problems.append(
                Problem(path.name, "", "is no part of a task", f"remove it; a task holds {', '.join(PUBLIC + PRIVATE)}")
            )
    config = _toml(folder, "task.toml", TaskToml, problems, REMEDIES)
    script, oracle = _json(folder, SCRIPT, Script, problems), _json(folder, ORACLE, Oracle, problems)
    instruction = _text(folder, INSTRUCTION, problems)
    if any((folder / name).is_file() and (folder / name).stat().st_size > _MAX_TEXT for name in _TEXTS):
        return None  # said above; a bundle would be made of it in memory
    try:
        public, private = read_tree(folder, PUBLIC), read_tree(folder, PRIVATE)
    except (ValueError, OSError) as error:
        problems.append(Problem(".", "", str(error), "a task is plain files"))
        return None
    if config is None or script is None or oracle is None or instruction is None:
        return None
    return Task(folder.name, config, instruction, script, oracle, public, private)


def _check_run(private: list[File]) -> Iterator[Problem]:
    for file in private:
        if file.path.startswith((RUN + "/", TRAPS + "/")):
            try:
                render(file.content, _SAMPLE_RUN, file.path)
            except ValueError as error:
                yield Problem(file.path, "", str(error).removeprefix(f"{file.path}: "), "correct the placeholder")


def _text(folder: Path, name: str, problems: list[Problem]) -> str | None:
    path = folder / name
    if not path.is_file():
        return None
    if (size := path.stat().st_size) > _MAX_TEXT:
        problems.append(Problem(name, "", f"has {size} bytes, at most {_MAX_TEXT} are read", "shorten it"))
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        problems.append(Problem(name, "", f"is not UTF-8 ({error})", "save it as UTF-8"))
        return None


def _toml(folder: Path, name: str, model: type[M], problems: list[Problem], remedies: dict[str, str]) -> M | None:
    text = _text(folder, name, problems)
    if text is None:
        if name == "benchmark.toml":
            problems.append(Problem(name, "", "is missing", "add it with name and version"))
        return None
    try:
        return _validated(model, tomllib.loads(text), name, problems, remedies)
    except tomllib.TOMLDecodeError as error:
        problems.append(Problem(name, _line(str(error)), f"is not TOML: {error}", "correct the line"))
        return None
    except (ValueError, RecursionError) as error:  # numbers and depths that Python does not take
        problems.append(Problem(name, "", f"cannot be read as TOML: {error}", "correct the value"))
        return None


def _json(folder: Path, name: str, model: type[M], problems: list[Problem]) -> M | None:
    text = _text(folder, name, problems)
    if text is None:
        return None
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        problems += from_validation(name, error)
        return None


def _validated(model: type[M], value: Any, name: str, problems: list[Problem], remedies: dict[str, str]) -> M | None:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems += from_validation(name, error, remedies)
        return None


def _line(message: str) -> str:
    found = re.search(r"line \d+", message)
    return found[0] if found else ""
