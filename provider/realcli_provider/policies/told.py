"""For a task nobody wrote a policy for: run the shell blocks of the user's messages one by one, then report."""

from __future__ import annotations

import re
from collections.abc import Generator

from realcli_provider.conversation import Action, Bash, Reply, Say

_BLOCK = re.compile(r"^```(?:sh|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def work(opening: str) -> Generator[Action, Reply, None]:
    """A message without a shell block is answered by a look around."""
    said = opening
    while True:
        commands = [block.strip() for block in _BLOCK.findall(said)] or ["pwd && ls -la"]
        outputs = []
        for number, command in enumerate(commands, 1):
            reply = yield Bash(command, f"Run command {number} of {len(commands)}")
            outputs.append(reply.result.strip()[-200:])
        reply = yield Say(f"I ran {len(commands)} command(s). The last one printed:\n\n{outputs[-1]}")
        said = reply.said
