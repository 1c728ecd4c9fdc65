"""What an earlier Job of the group has judged already (`n` above 1: trials that were invalid ran again).

A judgement of a sealed run is made once. Made again it could differ: what a session may spend hangs on how many runs share the
group's budget, and there are more of them now.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeVar

from pydantic import ValidationError

from realcli.api.base import Frozen
from realcli.api.faults import first_fault
from realcli.audit.model import AuditRecord
from realcli.checks.digest import digest8
from realcli.judging.purse import Purse, Spent
from realcli.scoring.records import Failure, Failures, Group, GroupInput, GroupMember, RepeatJudgement
from realcli.storage.port import NotFound
from realcli_judge.group import Opened
from realcli_judge.inputs import Inputs, Refused

M = TypeVar("M", bound=Frozen)


def earlier_group(inputs: Inputs, asked: GroupInput, judge: str) -> Group | None:
    """The newest group file before this one; None: there is none."""
    for n in range(asked.n - 1, 0, -1):
        key = inputs.paths.group(digest8(judge), asked.configuration, asked.task, n)
        try:
            return _read(Group, key, inputs.store.get(key))
        except NotFound:
            continue
    return None


def kept(
    inputs: Inputs,
    kind: type[RepeatJudgement] | type[AuditRecord],
    folder: str,
    names: dict[str, str],
    opened: Sequence[Opened],
    judge: str,
) -> dict[str, str]:
    """Those of an earlier group's files (repeat -> name) that are of the same sealed runs. `Refused` for one of another run."""
    found: dict[str, str] = {}
    for one in opened:
        member = one.member
        name = names.get(str(member.repeat))
        if name is None or digest8(one.work_seal) not in name:
            continue
        key = f"{folder}/{name}"
        record = _read(kind, key, inputs.store.get(key))
        if (record.work_seal, record.judge, record.ordinal) != (one.work_seal, judge, member.ordinal):
            raise Refused(
                "EvidenceSwapped", f"{key} is of trial {record.ordinal} with seal {record.work_seal}, by {record.judge}"
            )
        found[str(member.repeat)] = name
    return found


def kept_labels(inputs: Inputs, folder: str, group: Group, members: Sequence[GroupMember]) -> dict[int, Failure]:
    """Labels of an earlier group file (by ordinal) for those members that still end as they did then."""
    if group.failures is None:
        return {}
    key = f"{folder}/{group.failures}"
    labels = {one.ordinal: one for one in _read(Failures, key, inputs.store.get(key)).failures}
    before = {member.ordinal: member for member in group.members}
    return {m.ordinal: labels[m.ordinal] for m in members if m.ordinal in labels and before.get(m.ordinal) == m}


def charge(purse: Purse, group: Group) -> None:
    """What the earlier Job spent is spent. What nobody told counts as the whole share: rather too much."""
    cost = group.cost
    if cost is None:
        return
    tokens = cost.tokens
    charged = (
        (purse.limit.tokens or 0) if tokens is None else tokens.input + tokens.cache_read + tokens.cache_write + tokens.output
    )
    usd = (purse.limit.usd or Decimal(0)) if cost.cost_usd is None else Decimal(cost.cost_usd)
    untold = int(tokens is None)
    spent = Spent(requests=cost.requests, untold=untold, charged=charged, usd=usd, unpriced=cost.cost_usd is None)
    purse.add(spent if tokens is None else spent.plus(Spent(tokens=tokens)))
    purse.exhausted = purse.exhausted or cost.exhausted


def _read(kind: type[M], key: str, data: bytes) -> M:
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{key} is none of this version: {first_fault(error)}") from error
