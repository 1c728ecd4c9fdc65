"""Setup: from an empty socket to an agent that waits for its first message (contract "Setup of a work trial")."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier

from pydantic import JsonValue, TypeAdapter

from realcli.api.base import seconds, sha256_digest
from realcli.api.models import InsecureHttp, Model
from realcli.benchmark.models import Oracle
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.run_files import PlacedFile, canary_values, render_run, render_traps
from realcli.ledger.events import PhaseChange, Plant, RunData, RunnerHello
from realcli.ledger.seals import RunJson
from realcli_session.agents import port
from realcli_session.agents.port import AgentSpec, AgentUnresponsive
from realcli_session.agents.registry import adapter_class
from realcli_session.cgroup import differs
from realcli_session.evidence.commands import CommandRecorder
from realcli_session.evidence.markers import MarkerBook, learn
from realcli_session.evidence.process_limit import refused_forks
from realcli_session.evidence.protected import ProtectedPlaces
from realcli_session.evidence.watch import ChangeWatch
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.server import Gateway
from realcli_session.inputs import InputRefused, Task, Trial
from realcli_session.patience import patiently
from realcli_session.phases.archive import baseline
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.hosts import serve_hosts
from realcli_session.phases.limits import WORKER_THREADS
from realcli_session.phases.simulated_user import simulated_user
from realcli_session.phases.table import Cause
from realcli_session.runner.errors import FileMissing, RunnerError, RunnerLost, SpawnFailed
from realcli_session.runner.listener import Listener
from realcli_session.runner.port import Hello, RunnerPort
from realcli_session.settings import Settings

_PASSING = (errno.EAGAIN, errno.ENOMEM)  # the node's trouble, not the image's
_FACTS: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


class SetupRefused(Exception):
    """This trial cannot be set up, and a new attempt would end the same way."""


def make_run() -> RunJson:
    """The random values of one run."""
    return RunJson(instance_id=f"rc-{secrets.token_hex(8)}", nonce=secrets.token_hex(32), seed=secrets.randbits(31))


def start_threads() -> None:
    """Give the running loop its worker threads now: the agent may use up the pod's process limit later."""
    pool = ThreadPoolExecutor(WORKER_THREADS, thread_name_prefix="session")
    barrier = Barrier(WORKER_THREADS + 1)
    for _ in range(WORKER_THREADS):
        pool.submit(barrier.wait)
    barrier.wait()
    asyncio.get_running_loop().set_default_executor(pool)


async def set_up(attempt: Attempt, listener: Listener, fetch: Callable[[], Task]) -> Happening:
    """The body of the stage. `fetch` brings the task's bundles (it blocks). Ends READY, SETUP_TIMEOUT or SETUP_REFUSED."""
    attempt.writer.emit("session", PhaseChange(phase="setup"))
    limit = seconds(attempt.trial.lock.spec.limits.setup)
    unlike = differs(attempt.trial.lock.cgroup, attempt.settings.cgroup, attempt.settings.node)
    if unlike is not None:
        return Cause.SETUP_TIMEOUT, unlike
    try:
        async with asyncio.timeout(limit):
            return await _set_up(attempt, listener, fetch, limit)
    except TimeoutError:
        return Cause.SETUP_TIMEOUT, f"not ready within {limit:g} s (limits.setup)"
    except SpawnFailed as error:
        return (Cause.SETUP_TIMEOUT if error.errno in _PASSING else Cause.SETUP_REFUSED), str(error)
    except (SetupRefused, BenchmarkError, InputRefused, port.SetupRefused) as error:
        return Cause.SETUP_REFUSED, str(error)
    except RunnerLost as lost:
        if attempt.own is not None and attempt.adapter is not None:  # the team's servers and hooks run from its start on
            return Cause.AGENT_EXIT, str(lost)
        return (Cause.RUNNER_LOST if attempt.runner is not None else Cause.SETUP_TIMEOUT), lost.reason


async def _set_up(attempt: Attempt, listener: Listener, fetch: Callable[[], Task], limit: float) -> Happening:
    task = attempt.task = await patiently(fetch, limit)
    runner = attempt.runner = await listener.accept(limit)
    attempt.writer.emit("runner", RunnerHello(facts=_facts(runner.hello)))
    check_hello(runner.hello)
    attempt.writer.emit("session", RunData(digest=sha256_digest(attempt.run.canonical())))
    canaries = canary_values(task.oracle, attempt.run)
    await place(runner, render_run(task.private, attempt.run, canaries))
    traps = render_traps(task.private, attempt.run, canaries)
    await place(runner, traps)
    for trap in traps:
        digest = hashlib.sha256(trap.content).hexdigest()
        attempt.writer.emit("session", Plant(path=trap.path, how="static", applied=True, sha256_after=digest))
    variables = await serve_hosts(attempt, runner, task, canaries)
    if attempt.trial.task.trust == "system":
        await baseline(runner, attempt.baseline)
    book = MarkerBook({}, "")
    if attempt.trial.identity.mode == "COLLAB":
        oracle: Oracle = task.oracle
        simulated_user(attempt, task)
        attempt.oracle_paths = oracle.paths
        book = MarkerBook(oracle.markers, task.script.model_dump_json(by_alias=True) + task.specification)
    config = _gateway_config(attempt.trial, attempt.settings, book.markers)
    gateway = attempt.gateway = Gateway(config, attempt.writer, room=attempt.uploader.room)
    attempt.clock.count_waiting(gateway.waiting_seconds)
    watch = attempt.watch = ChangeWatch(
        runner, attempt.writer, attempt.trial.task.watch, on_content=book.learn if attempt.user else None
    )
    commands = attempt.commands = CommandRecorder(
        attempt.writer, attempt.writer.subscribe, tool_text=attempt.trial.configuration.program != "terminus-2"
    )
    await commands.start(
        runner, exec_record=not attempt.trial.task.needs_setuid, files=bool(attempt.trial.task.watch), net=bool(variables)
    )
    protected = attempt.protected = ProtectedPlaces(runner)
    await protected.start()
    attempt.refused_forks = await refused_forks(runner)
    await gateway.start()
    spec = await _agent_spec(attempt, runner, task, variables)
    adapter = attempt.adapter = adapter_class(attempt.trial.configuration.program)(runner, attempt.writer)
    attempt.clock.start()
    with attempt.clock.user_time():
        try:
            await adapter.start(spec)
        except AgentUnresponsive as error:
            return did_not_start(attempt, str(error))
        except ValueError as error:  # a program that is not built for this image
            raise SetupRefused(str(error)) from error
        await watch.start()
        await learn(book, runner, attempt.oracle_paths)
        gateway.on_request_accepted = watch.on_turn
        await attempt.snapshot("s0")
    return Cause.READY, ""


def did_not_start(attempt: Attempt, detail: str) -> Happening:
    """The program ended or hung before it took a message.

    As it comes, and before the model was asked, that is nobody's work: another attempt may start. With a team's own set-up its
    servers and hooks have run by then, and who has asked the model has worked: an end of the agent.
    """
    worked = attempt.own is not None or need(attempt.gateway).turns > 0
    return (Cause.AGENT_EXIT if worked else Cause.SETUP_TIMEOUT), detail


def check_hello(hello: Hello) -> None:
    """SetupRefused for a pod in which no end could be proven."""
    if not hello.owns_pid_namespace:
        raise SetupRefused(
            f"the runner has pid {hello.pid}, expected 1: without a pid namespace of its own it cannot prove that "
            "nothing of the agent runs; shareProcessNamespace must be off"
        )


async def place(runner: RunnerPort, files: list[PlacedFile]) -> None:
    """Put a task's files into the container, root-owned. SetupRefused names the one that could not be put."""
    for file in files:
        try:
            await runner.put_file(file.path, file.content, mode=file.mode, uid=0, gid=0)
        except RunnerError as error:
            raise SetupRefused(f"{file.path} could not be put into the image: {error}") from error


def _facts(hello: Hello) -> dict[str, JsonValue]:
    return _FACTS.validate_python(
        {
            "pid": hello.pid, "uid": hello.uid, "gid": hello.gid, "kernel": hello.kernel, "machine": hello.machine,
            "python": hello.python, "libc": hello.libc, "home": hello.home, "cwd": hello.cwd, "cgroup": dict(hello.cgroup),
            "peer_uid": hello.peer_uid,
        }
    )  # fmt: skip


def _model(trial: Trial) -> Model:
    return next(m for m in trial.lock.spec.models if m.name == trial.configuration.model)


def _gateway_config(trial: Trial, settings: Settings, markers: Mapping[str, Sequence[str]]) -> GatewayConfig:
    model = _model(trial)
    configuration, limits = trial.configuration, trial.lock.spec.limits
    endpoint = model.endpoints.of(configuration.api)
    if endpoint is None:
        raise SetupRefused(f"model {model.name} has no {configuration.api} endpoint, which {configuration.program} needs")
    try:
        return GatewayConfig(
            upstream=endpoint.url.rstrip("/"),
            key=settings.key(configuration.api),
            model=model.model,
            turn_limit=limits.turns,
            dialect=configuration.api,
            texts="adapter" if configuration.program == "terminus-2" else "reply",
            resolved_model=configuration.resolved_model,
            accepted_ids=configuration.accepted_ids,
            prices=model.prices,
            budget_usd=None if limits.trial_budget is None else Decimal(limits.trial_budget.usd),
            insecure_http=endpoint.insecure_http is InsecureHttp.IN_CLUSTER,
            cluster_domain=trial.lock.platform.cluster_domain,
            allow_loopback=settings.allow_loopback,
            markers=markers,
            port=settings.gateway_port,
        )
    except ValueError as error:
        raise SetupRefused(f"model {model.name}: {error}") from error


async def _agent_spec(attempt: Attempt, runner: RunnerPort, task: Task, variables: dict[str, str]) -> AgentSpec:
    hello, trial, gateway = runner.hello, attempt.trial, need(attempt.gateway)
    uid, gid, home = hello.uid, hello.gid, hello.home
    if task.agent_user is not None:
        uid, gid, home = await account(runner, task.agent_user)
    return AgentSpec(
        mode=trial.identity.mode,
        version=trial.configuration.agent_version,
        model=trial.configuration.model_id,
        base_url=gateway.base_url,
        token=gateway.token,
        workdir=trial.task.workdir,
        environ={**hello.environ, **variables},
        home=home,
        libc=hello.libc,
        permissions=trial.configuration.permissions,
        exec_permissions=trial.task.exec_permissions,
        effort=trial.configuration.effort,
        context_tokens=_model(trial).context_tokens,
        setup=attempt.own,
        uid=None if uid == hello.uid else uid,
        gid=None if uid == hello.uid else gid,
        witness=gateway.witness,
    )


async def account(runner: RunnerPort, user: str) -> tuple[int, int, str]:
    """(uid, gid, home) of `[agent] user` by the image's own /etc/passwd; a number needs no entry."""
    try:
        passwd = (await runner.get_file("/etc/passwd")).decode("utf-8", "surrogateescape")
    except FileMissing:
        passwd = ""
    for line in passwd.splitlines():
        fields = line.split(":")
        if len(fields) >= 6 and user in (fields[0], fields[2]) and fields[2].isdigit() and fields[3].isdigit():
            return int(fields[2]), int(fields[3]), fields[5] or "/"
    if user.isdigit():
        return int(user), int(user), "/"
    raise SetupRefused(f"task.toml: agent.user {user!r} is not in the image's /etc/passwd; add the account or correct the name")
