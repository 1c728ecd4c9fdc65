"""Mock hosts of a task: task.toml names them, the oracle contract says what they answer, files lie in interaction/hosts/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from realcli.benchmark.bundles import File
from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.problems import Problem

FOLDER = "interaction/hosts"
_TOML, _ORACLE = "task.toml", "interaction/oracle_contract.json"


def host_file(host: str, name: str) -> str:
    """Where the body of a route lies in the private bundle."""
    return f"{FOLDER}/{host}/{name}"


def check_hosts(oracle: Oracle, named: Iterable[str], private: Iterable[File]) -> Iterator[Problem]:
    """Both files must name the same hosts, and every file that a route names must be there."""
    files = {file.path for file in private}
    listed = set(named)
    for host in sorted(listed - set(oracle.hosts)):
        what = f"{host} is in mock_hosts of task.toml"
        yield Problem(_ORACLE, "hosts", what, "say here what it answers, or remove it there")
    for host in sorted(set(oracle.hosts) - listed):
        yield Problem(
            _TOML, "metadata.realcli.mock_hosts", f"{host} is not in it", "add it, as oracle_contract.json describes it"
        )
    for host, mock in sorted(oracle.hosts.items()):
        for number, route in enumerate(mock.routes):
            if route.file is not None and host_file(host, route.file) not in files:
                place = host_file(host, route.file)
                yield Problem(_ORACLE, f"hosts.{host}.routes[{number}].file", f"{place} does not exist", "add the file")
