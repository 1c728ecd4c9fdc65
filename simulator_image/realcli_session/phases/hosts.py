"""Setup of a task's mock hosts: served before anything of the agent runs, in both modes."""

from __future__ import annotations

from collections.abc import Mapping

from realcli.benchmark.bundles import read_tree
from realcli.benchmark.hosts import FOLDER
from realcli.benchmark.run_files import render
from realcli_session.agents.port import SetupRefused
from realcli_session.evidence.mockhosts.authority import Authority
from realcli_session.evidence.mockhosts.container import introduce, loopback_address
from realcli_session.evidence.mockhosts.server import MockHosts, PortsTaken
from realcli_session.inputs import Task
from realcli_session.phases.attempt import Attempt
from realcli_session.runner.errors import RunnerError
from realcli_session.runner.port import RunnerPort


async def serve_hosts(attempt: Attempt, runner: RunnerPort, task: Task, canaries: Mapping[str, str]) -> dict[str, str]:
    """Start them and tell the container; the variables its programs get, empty for a task without hosts. Raises SetupRefused."""
    names = attempt.trial.task.mock_hosts
    if not names:
        return {}
    oracle = task.oracle
    hosts = {name: oracle.hosts[name] for name in names}
    files = {file.path: render(file.content, attempt.run, file.path, canaries) for file in read_tree(task.private, [FOLDER])}
    address = loopback_address(attempt.run.nonce)
    authority = Authority(f"hosts of {attempt.run.instance_id}")
    served = MockHosts(hosts, files, canaries, attempt.writer, address=address, authority=authority)
    try:
        await served.start()
        attempt.mock_hosts = served
        return await introduce(runner, names, address, authority.pem)
    except PortsTaken as error:
        raise SetupRefused(str(error)) from error
    except RunnerError as error:
        raise SetupRefused(f"mock hosts: the container's names could not be written: {error}") from error
