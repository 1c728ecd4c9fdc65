"""`realcli trial run`: one trial on this machine, by the programs that run it in a pod."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.text import Text

from realcli.api.agents import PROGRAMS
from realcli.api.sweep import Mode
from realcli.api.termination import Result, Termination
from realcli.benchmark.suite import Suite
from realcli.ledger.ctrf import FailedTest, failed_tests
from realcli.ledger.events import ProbeDelivered, ProbeUntriggered
from realcli.ledger.show import visible
from realcli.storage.port import NotFound
from realcli_cli.local.children import ended_in_order
from realcli_cli.local.container import Container, chroot_container
from realcli_cli.local.engine import EngineContainer, engine, image_in
from realcli_cli.local.follow import Follower
from realcli_cli.local.images import archive_of_task, image_of_archive, image_of_folder
from realcli_cli.local.pods import Ended, pod
from realcli_cli.local.programs import agent_folder, terminus_words, toolkit
from realcli_cli.local.provider import scripted_provider
from realcli_cli.local.sweep import LocalSweep, Model, plan_sweep, suite_of_task
from realcli_cli.local.userns import become_root
from realcli_cli.main import UserError

app = typer.Typer(no_args_is_help=True, help="Run a trial without a cluster.")
SHOWN_FAILURES = 10
LESS = (
    "isolates less than a pod: the agent shares this machine's network and kernel, nothing bounds its memory, processes or disk, "
    "and no wall keeps it from the internet"
)


class Isolation(StrEnum):
    """How the untrusted container is made."""

    AUTO = "auto"
    CHROOT = "chroot"
    DOCKER = "docker"
    PODMAN = "podman"


class Agent(StrEnum):
    """The agent program."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    TERMINUS_2 = "terminus-2"


class ModeName(StrEnum):
    """How the task is given."""

    EXEC = "EXEC"
    COLLAB = "COLLAB"


@app.callback()
def _group() -> None:
    """Run a trial without a cluster."""


@app.command()
def run(
    task: Annotated[Path, typer.Option(help="The task's folder (task.toml in it).")],
    agent: Annotated[Agent, typer.Option(help="Agent program.")],
    mode: Annotated[ModeName, typer.Option(help="EXEC: the whole specification at once. COLLAB: with the simulated user.")],
    provider_script: Annotated[
        Path | None, typer.Option(help="Answers instead of a model (docs/provider-script.md); a provider is started for it.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model id, with --endpoint.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Base URL of a real provider, without /v1, instead of a script.")] = None,
    key_env: Annotated[str | None, typer.Option(help="Environment variable that holds its key.")] = None,
    image: Annotated[Path | None, typer.Option(help="The task's image: docker save or OCI archive, or an OCI folder.")] = None,
    root: Annotated[Path | None, typer.Option(help="A root folder instead of an image; it is copied.")] = None,
    isolation: Annotated[
        Isolation, typer.Option(help="auto: a chroot with namespaces of its own, else an engine.")
    ] = Isolation.AUTO,
    out: Annotated[
        Path | None, typer.Option(help="Where evidence goes (new). Default: realcli-out/<task>-<agent>-<mode>-<time>.")
    ] = None,
    agent_dir: Annotated[Path | None, typer.Option(help="The agent program's folder; default: the pinned one from npm.")] = None,
    toolkit_dir: Annotated[Path | None, typer.Option("--toolkit", help="Files of the toolkit image; default: made once.")] = None,
    templates: Annotated[Path | None, typer.Option(help="The words of Terminus-2; default: out of the pinned wheel.")] = None,
    turns: Annotated[int | None, typer.Option(help="limits.turns.")] = None,
    deadline: Annotated[str | None, typer.Option(help="Working time, e.g. 10m.")] = None,
    user_model: Annotated[
        str | None, typer.Option(help="Model id of the simulated user, by the same endpoint or script. Default: Canonical.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every event, and what the session says.")] = False,
) -> None:
    """Run one trial here: work, then verify. Exit code 0: it counts and has a reward; 1: it does not; 2: something to mend."""
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)

    def show(text: str) -> None:
        console.print(Text(visible(text)))

    if image is not None and root is not None:
        raise UserError("--image and --root are two ways to give the task's root: take one")
    suite = suite_of_task(task)
    place = out or Path("realcli-out") / f"{task.resolve().name}-{agent}-{mode}-{time.strftime('%Y%m%d-%H%M%S')}"
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UserError(f"--out {place} exists and is not an empty folder; name a new one")
    real = _real_model(provider_script, model, endpoint, key_env)  # what can be refused at once is, before an image is made
    make = _containers(task, suite, agent, image, root, isolation, agent_dir, toolkit_dir, show)
    limits: dict[str, Any] = {"turns": turns} if turns else {}
    if deadline:
        limits |= {str(mode).lower(): {"deadline": deadline}}
    environment = {"REALCLI_TERMINUS_TEMPLATES": str(terminus_words(templates))} if agent is Agent.TERMINUS_2 else {}
    with ended_in_order(), _told(place, show), _served(provider_script, model, real) as served:
        user = Model(user_model, served.url, served.key) if user_model else None
        sweep = plan_sweep(
            place, suite, agent, served, modes=[cast(Mode, str(mode))], user=user, limits=limits, environment=environment
        )
        for warning in sweep.lock.warnings:
            show(f"warning: {warning}")
        keys = {PROGRAMS[agent].api: served.key} | ({"user": user.key} if user else {})
        ended = _run(sweep, make, keys, show, verbose)
    raise typer.Exit(_report(sweep, ended, show))


def _run(
    sweep: LocalSweep, make: Callable[[], Container], keys: dict[str, str], show: Callable[[str], None], verbose: bool
) -> list[Termination]:
    """Work, then verify if there is something to verify."""
    follow = Follower(sweep.store, sweep.attempt(0), show, verbose)
    with pod(sweep, 0, ["work", "--attempt", "1"], make(), keys) as running:
        worked = _said(running.ended(look=follow), show, verbose)
    if worked.result is not Result.WORK_SEALED:
        return [worked]
    show("verify: the tests run on a fresh root with the sealed state")
    numbers = ["--attempt", "1", "--verify", "1", *(["--work-seal", worked.seal] if worked.seal else [])]
    with pod(sweep, 0, ["verify", *numbers], make(), {}) as running:
        return [worked, _said(running.ended(), show, verbose)]


def _said(ended: Ended, show: Callable[[str], None], verbose: bool) -> Termination:
    if verbose or ended.termination is None:
        for line in ended.stderr.splitlines():
            show(f"session: {line}")
    if ended.termination is None:
        raise UserError(f"the session ended with {ended.code} and left no message; see above")
    return ended.termination


@contextlib.contextmanager
def _told(place: Path, show: Callable[[str], None]) -> Iterator[None]:
    """Of a run that somebody ended: where what there is of it lies."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        show("")
        show(f"ended before its end; what was sealed by then is evidence {place}")
        raise


def _report(sweep: LocalSweep, ended: list[Termination], show: Callable[[str], None]) -> int:
    worked, last = ended[0], ended[-1]
    verdict = last.result is Result.VERDICT
    tokens = worked.tokens
    rows = [
        (
            "outcome",
            f"{last.reason or worked.reason} ({'valid' if last.result in (Result.VERDICT, Result.WORK_SEALED) else 'invalid'})",
        ),
        ("message", last.message or worked.message or ""),
        ("reward", (last.reward or "none") if verdict else "none: " + str(last.result)),
        ("checks", f"{last.checks.passed}/{last.checks.total}" if last.checks else ""),
        *(("failed", f"{test.name}: {test.why}" if test.why else test.name) for test in _failed(sweep, verdict)),
        ("turns", f"{worked.turns}, {worked.working_seconds} s of working time"),
        ("tokens", f"{tokens.input} in, {tokens.cache_read} read from cache, {tokens.output} out" if tokens else ""),
        ("probes", _probes(sweep)),
        ("evidence", str(sweep.place(0))),
        ("read it", f"realcli ledger cat {sweep.place(0)}"),
        ("check it", f"realcli ledger verify {sweep.place(0)}"),
    ]
    show("")
    for name, text in rows:
        if text:
            show(f"{name:<9} {text}")
    return 0 if verdict else 1


def _failed(sweep: LocalSweep, verdict: bool) -> list[FailedTest]:
    """What the tests say of those that failed; the rest lies in ctrf.json."""
    if not verdict:
        return []
    try:
        found = failed_tests(sweep.store.get(sweep.attempt(0).verify(1).ctrf))
    except NotFound:
        return []
    more = len(found) - SHOWN_FAILURES
    return found[:SHOWN_FAILURES] + ([FailedTest(f"… and {more} more: see verify-1/ctrf.json", "")] if more > 0 else [])


def _probes(sweep: LocalSweep) -> str:
    told = [event.typed() for event in sweep.events(0)]
    delivered = [f"{one.probe} delivered" for one in told if isinstance(one, ProbeDelivered)]
    return ", ".join(
        [*delivered, *(f"{one.probe} untriggered ({one.reason})" for one in told if isinstance(one, ProbeUntriggered))]
    )


def _real_model(script: Path | None, model: str | None, endpoint: str | None, key_env: str | None) -> Model | None:
    """None: a script answers. UserError where neither is given as it has to be."""
    if script is not None:
        if endpoint or key_env:
            raise UserError("--provider-script and --endpoint are two ways to get answers: take one")
        if not script.is_file():
            raise UserError(f"--provider-script {script}: no such file; docs/provider-script.md shows one")
        return None
    if not (model and endpoint and key_env):
        raise UserError("who answers? Give --provider-script FILE, or --model ID --endpoint URL --key-env NAME")
    key = os.environ.get(key_env, "").strip()
    if not key:
        raise UserError(f"--key-env {key_env}: the variable is not set or empty")
    return Model(model, endpoint, key)


@contextlib.contextmanager
def _served(script: Path | None, model: str | None, real: Model | None) -> Iterator[Model]:
    """Who answers, for the time of the run."""
    if real is not None:
        yield real
        return
    with scripted_provider(script) as provider:
        yield Model(model or "claude-sonnet-4-5", provider.url, provider.key)


def _containers(
    task: Path,
    suite: Suite,
    agent: Agent,
    image: Path | None,
    root: Path | None,
    isolation: Isolation,
    agent_dir: Path | None,
    toolkit_dir: Path | None,
    show: Callable[[str], None],
) -> Callable[[], Container]:
    """How the run's containers are made: each call a fresh one."""
    config = suite.tasks[0].config
    name, setuid = config.environment.docker_image, bool(getattr(config.metadata.realcli, "needs_setuid", False))
    chosen = isolation
    if isolation is Isolation.AUTO:
        chosen = Isolation.CHROOT
        try:
            become_root()
        except UserError as missing:
            found = engine()
            if found is None:
                raise UserError(f"{missing} (no docker or podman answers here either)") from missing
            chosen = Isolation(found)
    elif isolation is Isolation.CHROOT:
        become_root()
    elif engine(isolation) is None:
        raise UserError(f"--isolation {isolation}: {isolation} is not installed or does not answer (`{isolation} info`)")
    show(f"isolation: {chosen}. It {LESS}")
    if chosen is not Isolation.CHROOT:
        if root is not None:
            raise UserError(f"--root is for --isolation chroot; with {chosen} give --image, or let it use its own image {name}")
        ref = image_in(chosen, image, name)
        tools, program = toolkit(toolkit_dir), agent_folder(agent, agent_dir)
        return lambda: EngineContainer(chosen, ref, tools, program, setuid)
    if root is not None:
        found_root = image_of_folder(root)
    else:
        found_root = image_of_archive(image if image is not None else archive_of_task(task, name))
    for note in found_root.notes:
        show(f"note: {note}")
    tools, program = toolkit(toolkit_dir), agent_folder(agent, agent_dir)
    return lambda: chroot_container(found_root, tools, program, setuid=setuid)
