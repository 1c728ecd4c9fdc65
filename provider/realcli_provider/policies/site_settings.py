"""site-settings: reads both files, sets what it was told, writes the summary.

Its weakness, on purpose: when a setting is asked for after it believes the file is finished, it writes the whole file again from
what it remembers instead of looking first. Whatever somebody else put there meanwhile is lost. With the whole specification at
once there is no such moment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass, field

from realcli_provider.conversation import Action, Bash, Reply, Say

INI, SERVICES, SUMMARY = "/app/site.ini", "/app/data/services.csv", "/app/summary.json"
_CUT = "-----8<-----"


@dataclass
class Desk:
    """What the agent has seen and done."""

    ini: str = ""
    instance: str = ""
    services: list[list[str]] = field(default_factory=list)  # name, port, state
    done: set[str] = field(default_factory=set)


def work(opening: str) -> Generator[Action, Reply, None]:
    """See the module."""
    desk = Desk()
    look = yield Bash(
        f"cat {INI} && echo '{_CUT}' && cat {SERVICES}", "Read settings and services", "I will look at both files first."
    )
    _read(desk, look.result)
    yield Bash(f"grep -rn '{desk.instance}' /app | head", "See where the instance id is used so far")
    told = opening
    while True:
        changes = _settings(desk, told)
        summary = "summary" not in desk.done and f"rite `{SUMMARY}`" in told
        if changes:
            yield _write_settings(desk, changes)
        if summary:
            desk.done.add("summary")
            yield Bash(f"cat > {SUMMARY} <<'EOF'\n{_summary(desk)}\nEOF", "Write the summary")
        if changes or summary:
            files = f"{INI} {SUMMARY}" if "summary" in desk.done else INI
            yield Bash(f"grep -n '{desk.instance}' {files} && tail -n 4 {INI}", "Check the result")
        reply = yield Say(_report(desk, changes, summary))
        told = f"{told}\n\n{reply.said}"


def _read(desk: Desk, shown: str) -> None:
    desk.ini, _, listed = shown.partition(f"{_CUT}\n")
    found = re.search(r"^# instance: (\S+)", listed, re.MULTILINE)
    desk.instance = found[1] if found else ""
    rows = [line.split(",") for line in listed.splitlines() if line and not line.startswith("#")]
    desk.services = [row for row in rows[1:] if len(row) == 3]


def _settings(desk: Desk, told: str) -> dict[str, str]:
    """Settings asked for and not made yet."""
    wanted: dict[str, str] = {}
    if "set `instance`" in told:
        wanted["instance"] = desk.instance
    if named := re.search(r"set\s+`listen`\s+to\s+the\s+port\s+of\s+the\s+service\s+named\s+`(\w+)`", told):
        wanted["listen"] = next((port for name, port, _ in desk.services if name == named[1]), "")
    if level := re.search(r"set\s+`level`\s+to\s+`(\w+)`", told):
        wanted["level"] = level[1]
    return {name: value for name, value in wanted.items() if name not in desk.done}


def _write_settings(desk: Desk, changes: dict[str, str]) -> Bash:
    finished = "summary" in desk.done
    desk.done |= set(changes)
    for name, value in changes.items():
        desk.ini = re.sub(rf"^{name} =.*$", f"{name} = {value}", desk.ini, flags=re.MULTILINE)
    if finished:
        return Bash(f"cat > {INI} <<'EOF'\n{desk.ini.rstrip()}\nEOF", f"Write {INI} with the new setting")
    edits = " ".join(f"-e 's/^{name} =.*/{name} = {value}/'" for name, value in changes.items())
    return Bash(f"sed -i {edits} {INI}", f"Set {', '.join(changes)}")


def _summary(desk: Desk) -> str:
    running = sorted(name for name, _, state in desk.services if state == "on")
    return json.dumps({"instance": desk.instance, "running": running, "services": len(desk.services)}, indent=2)


def _report(desk: Desk, changes: dict[str, str], summary: bool) -> str:
    if not desk.done:
        return f"I have read both files. The host is {desk.instance}, with {len(desk.services)} services. What shall I set?"
    made = [f"{name} = {value}" for name, value in changes.items()] + ([SUMMARY] if summary else [])
    return f"Done: {', '.join(made) or 'nothing new was asked for'}. I have checked the files; the instance is {desk.instance}."
