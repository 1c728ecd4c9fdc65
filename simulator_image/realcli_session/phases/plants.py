"""Dynamic plants: the simulated user edits a file while the agent is idle."""

from __future__ import annotations

import hashlib

from realcli.benchmark.edits import apply_edit
from realcli.benchmark.models import Edit
from realcli.ledger.events import Plant
from realcli_session.phases.attempt import Attempt, need
from realcli_session.phases.limits import PLANT_BYTES
from realcli_session.runner.errors import RunnerError


async def plant(attempt: Attempt, probe: str, edit: Edit) -> bool:
    """Apply the edit; True if it is in place and known to be ours. Either way one Plant event says what was found.

    The file keeps its owner and mode. The change is not the agent's, so the change watch takes it as its new base; where it
    cannot, the edit would be told as the agent's, so the plant does not count as applied.
    """
    runner = need(attempt.runner)
    before = after = None
    applied = False
    try:
        content = await runner.get_file(edit.path, limit=PLANT_BYTES)
        before = hashlib.sha256(content).hexdigest()
        changed = apply_edit(content, edit)
        await runner.put_file(edit.path, changed, parents=False)
        after = hashlib.sha256(changed).hexdigest()
        await need(attempt.watch).rebase(edit.path)
        applied, detail = True, ""
    except RunnerError as error:
        detail = str(error)
    attempt.writer.emit(
        "session",
        Plant(
            path=edit.path, how="dynamic", probe=probe, applied=applied, detail=detail, sha256_before=before, sha256_after=after
        ),
    )
    return applied
