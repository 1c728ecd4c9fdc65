"""Setup of a task's mock hosts: served before anything of the agent runs, in both modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from realcli.benchmark.bundles import read_tree
from realcli.benchmark.hosts import FOLDER
from realcli.benchmark.run_files import render
from realcli.ledger.seals import RunJson
from realcli_session.agents.port import SetupRefused
from realcli_session.evidence.mockhosts.authority import Authority
from realcli_session.evidence.mockhosts.container import introduce, loopback_address
from realcli_session.evidence.mockhosts.server import MockHosts, PortsTaken
from realcli_session.gateway.port import EventSink
from realcli_session.inputs import Task
from realcli_session.phases.attempt import Attempt
from realcli_session.runner.errors import RunnerError
from realcli_session.runner.port import RunnerPort


async def serve_hosts(attempt: Attempt, runner: RunnerPort, task: Task, canaries: Mapping[str, str]) -> dict[str, str]:
    """Those of an attempt, which keeps them; the variables that its programs get. Raises SetupRefused."""
    attempt.mock_hosts, variables = await start_hosts(
        attempt.trial.task.mock_hosts, task, attempt.run, canaries, attempt.writer, runner
    )
    return variables


async def start_hosts(
    names: Sequence[str], task: Task, run: RunJson, canaries: Mapping[str, str], sink: EventSink, runner: RunnerPort
) -> tuple[MockHosts | None, dict[str, str]]:
    """Start them and tell the container; (the hosts, the variables its programs get). Raises SetupRefused."""
    if not names:
        return None, {}
    oracle = task.oracle
    hosts = {name: oracle.hosts[name] for name in names}
    files = {file.path: render(file.content, run, file.path, canaries) for file in read_tree(task.private, [FOLDER])}
    address = loopback_address(run.nonce)
    authority = Authority(f"hosts of {run.instance_id}")
    served = MockHosts(hosts, files, canaries, sink, address=address, authority=authority)
    try:
        await served.start()
        return served, await introduce(runner, list(names), address, authority.pem)
    except PortsTaken as error:
        raise SetupRefused(str(error)) from error
    except RunnerError as error:
        await served.stop()
        raise SetupRefused(f"mock hosts: the container's names could not be written: {error}") from error
