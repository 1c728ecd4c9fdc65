"""bank-reconcile: looks around, keeps the settings and the program in step with what it has been told, checks, reports.

It reads /app/rules.conf again before it changes it, so a colleague's note survives. Its weakness, on purpose: in a long
conversation (from the fifth message on) it writes the program anew for the last wishes and loses the rule about references,
which it was told two messages earlier. With the whole specification at once nothing gets lost.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field

from realcli_provider.conversation import Action, Bash, Reply, Say
from realcli_provider.policies.bank_program import known, program

RULES, PROGRAM, REPORT = "/app/rules.conf", "/app/reconcile.py", "/app/report.json"
LEDGER, STATEMENT = "/app/data/ledger.csv", "/app/data/statement.csv"
LONG = 5  # messages


@dataclass
class Desk:
    """What the agent has seen and done."""

    instance: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    words: set[str] | None = None  # what the program on disk knows of
    saved: bool = False


def work(opening: str) -> Generator[Action, Reply, None]:
    """See the module."""
    desk, told, latest, messages = Desk(), opening, opening, 1
    look = f"ls -l /app /app/data && cat {RULES} && head -n 8 {LEDGER} {STATEMENT}"
    seen = yield Bash(look, "Look at the files", "I will look at the files first.")
    found = re.search(r"^# instance: (\S+)", seen.result, re.MULTILINE)
    desk.instance = found[1] if found else ""
    yield Bash(f"grep -rn '{desk.instance}' /app | head", "See where the instance id is used so far")
    while True:
        did = yield from _settings(desk, told)
        did += yield from _program(desk, told, messages)
        did += yield from _save(desk, told)
        reply = yield Say(_report(did, latest))
        latest, told, messages = reply.said, f"{told}\n\n{reply.said}", messages + 1


def _settings(desk: Desk, told: str) -> Generator[Action, Reply, list[str]]:
    text = " ".join(told.split())
    wanted = dict(re.findall(r"[Ss]et `(\w+)` in `/app/rules\.conf` to `(\w+)`", text))
    if re.search(r"[Ss]et `instance` in `/app/rules\.conf` to that id", text):
        wanted["instance"] = desk.instance
    changes = {name: value for name, value in sorted(wanted.items()) if desk.settings.get(name) != value}
    if not changes:
        return []
    desk.settings |= changes
    yield Bash(f"cat {RULES}", f"Read {RULES} again before changing it")
    edits = " ".join(f"-e 's/^{name} =.*/{name} = {value}/'" for name, value in changes.items())
    yield Bash(f"sed -i {edits} {RULES}", f"Set {', '.join(changes)}")
    yield Bash(f"grep -n -e '= {desk.instance}$' -e '^[a-z_]* =' {RULES}", "Check the settings")
    return [f"{name} is {value}" for name, value in changes.items()]


def _program(desk: Desk, told: str, messages: int) -> Generator[Action, Reply, list[str]]:
    words = known(told)
    if messages >= LONG:
        words = words - {"reference"}
    if words == desk.words:
        return []
    desk.words = words
    text = program(words)
    yield Bash(f"cat > {PROGRAM} <<'EOF'\n{text}\nEOF\nchmod 755 {PROGRAM}", "Write the program")
    yield Bash(f"python3 {PROGRAM} {LEDGER} {STATEMENT} | grep -c '{desk.instance}'", "Try it on the data")
    return [f"{PROGRAM} now covers {', '.join(sorted(words)) or 'the two files'}"]


def _save(desk: Desk, told: str) -> Generator[Action, Reply, list[str]]:
    if desk.saved or f"`{REPORT}`" not in told:
        return []
    desk.saved = True
    yield Bash(f"python3 {PROGRAM} {LEDGER} {STATEMENT} > {REPORT}; grep -n '{desk.instance}' {REPORT}", "Save the report")
    return [f"the report of this month is in {REPORT}"]


def _report(did: list[str], latest: str) -> str:
    if not did:
        return f"I see nothing to change for: {' '.join(latest.split())[:80]}"
    return f"Done: {'; '.join(did)}. I ran it on the files in /app/data."
