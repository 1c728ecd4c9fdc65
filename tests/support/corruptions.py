"""A seeded mutator: takes the files of a sealed attempt, does one thing to them, and says what that has to be called."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from realcli.ledger.findings import Kind
from realcli.ledger.seals import SealedObject, VerifySeal, WorkSeal

Files = dict[str, bytes]
SEAL, VERIFY = "work-seal.json", "verify-1/seal.json"


class Expected(NamedTuple):
    """The one name a corruption has, and where it is found; `anchor`: only against the anchors."""

    kind: Kind
    where: str
    anchor: bool = False


class Scene(NamedTuple):
    """What a mutator works on."""

    rng: random.Random
    files: Files
    other: Files  # another attempt, sealed as well

    def segments(self) -> list[str]:
        return sorted(name for name in self.files if name.startswith("ledger/"))

    def blobs(self) -> list[str]:
        return sorted(name for name in self.files if name.startswith("blobs/"))

    def lines(self, segment: str) -> list[bytes]:
        return self.files[segment].split(b"\n")[:-1]

    def put(self, segment: str, lines: list[bytes]) -> None:
        self.files[segment] = b"".join(line + b"\n" for line in lines)

    def some_segment(self, at_least: int = 1) -> str:
        """Not the last one: a hole at the end is a truncation."""
        return self.rng.choice([s for s in self.segments()[:-1] if len(self.lines(s)) >= at_least])

    def some_line(self, at_least: int = 1) -> tuple[str, int, list[bytes]]:
        segment = self.some_segment(at_least)
        lines = self.lines(segment)
        return segment, self.rng.randrange(len(lines)), lines


Mutator = Callable[[Scene], Expected]
MUTATORS: dict[str, Mutator] = {}


def mutator(function: Mutator) -> Mutator:
    MUTATORS[function.__name__] = function
    return function


def edited(line: bytes, **changes: Any) -> bytes:
    return json.dumps({**json.loads(line), **changes}, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def at(segment: str, index: int) -> str:
    return f"{segment}:{index + 1}"


# -- lines


@mutator
def a_letter_changed(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    data = json.loads(lines[i])["data"]
    lines[i] = edited(lines[i], data={**data, "forged": s.rng.random()})
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def an_envelope_changed(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    changes: dict[str, Any] = {"t": "2020-01-01T00:00:00.000Z", "turn": 99, "exchange": 9, "mono": 1e6, "kind": "forged"}
    field = s.rng.choice(sorted(changes))
    lines[i] = edited(lines[i], **{field: changes[field]})
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def a_number_changed(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    lines[i] = edited(lines[i], seq=s.rng.choice([10**6, 0, -1, json.loads(lines[i])["seq"] + 1]))
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def a_link_changed(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    lines[i] = edited(lines[i], prev=s.rng.randbytes(32).hex())
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def a_line_garbled(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    lines[i] = s.rng.choice([b"{}", b"", b"null", b"[" * 5000, b"\xff\xfe", lines[i][:-1], lines[i] + b"x"])
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def a_line_of_the_last_segment_changed(s: Scene) -> Expected:
    segment = s.segments()[-1]
    lines = s.lines(segment)
    i = s.rng.randrange(len(lines))
    lines[i] = edited(lines[i], data={"forged": True})
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def a_space_added(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    lines[i] = lines[i] + s.rng.choice([b" ", b"\r", b"\t"])
    s.put(segment, lines)
    return Expected(Kind.CHANGED, at(segment, i))


@mutator
def lines_dropped(s: Scene) -> Expected:
    segment, i, lines = s.some_line(3)
    count = s.rng.randint(1, len(lines) - 1)
    i = min(i, len(lines) - count)
    s.put(segment, lines[:i] + lines[i + count :])
    return Expected(Kind.MISSING, segment)


@mutator
def lines_dropped_at_the_end(s: Scene) -> Expected:
    segment = s.segments()[-1]
    lines = s.lines(segment)
    s.put(segment, lines[: s.rng.randrange(len(lines))])
    return Expected(Kind.TRUNCATED, "ledger")


@mutator
def two_lines_exchanged(s: Scene) -> Expected:
    segment, _, lines = s.some_line(2)
    i, k = sorted(s.rng.sample(range(len(lines)), 2))
    lines[i], lines[k] = lines[k], lines[i]
    s.put(segment, lines)
    return Expected(Kind.REORDERED, segment)


@mutator
def a_line_moved(s: Scene) -> Expected:
    segment, i, lines = s.some_line(3)
    line = lines.pop(i)
    k = s.rng.choice([n for n in range(len(lines) + 1) if n != i])
    lines.insert(k, line)
    s.put(segment, lines)
    return Expected(Kind.REORDERED, segment)


@mutator
def a_line_moved_to_another_segment(s: Scene) -> Expected:
    segment, i, lines = s.some_line(3)
    line = lines.pop(i)
    s.put(segment, lines)
    far = [name for name in s.segments() if name != segment]
    target = s.rng.choice([n for n in far if abs(s.segments().index(n) - s.segments().index(segment)) > 1])
    there = s.lines(target)
    there.insert(s.rng.randrange(1, len(there) + 1), line)
    s.put(target, there)
    return Expected(Kind.REORDERED, target)


@mutator
def a_line_twice(s: Scene) -> Expected:
    segment, i, lines = s.some_line(2)
    lines.insert(s.rng.randrange(len(lines) + 1), lines[i])
    s.put(segment, lines)
    return Expected(Kind.ADDED, segment)


@mutator
def a_line_forged_in_between(s: Scene) -> Expected:
    segment, i, lines = s.some_line()
    above = lines[i]
    seq = json.loads(above)["seq"]
    forged = edited(
        above, seq=s.rng.choice([seq, seq + 1, 10**6]), prev=hashlib.sha256(above).hexdigest(), data={"x": s.rng.random()}
    )
    lines.insert(i + 1, s.rng.choice([forged, b"hello", b"{}"]))
    s.put(segment, lines)
    return Expected(Kind.ADDED, at(segment, i + 1))


@mutator
def a_line_forged_at_the_end(s: Scene) -> Expected:
    segment = s.segments()[-1]
    lines = s.lines(segment)
    last = json.loads(lines[-1])
    s.put(
        segment, [*lines, edited(lines[-1], seq=last["seq"] + 1, prev=hashlib.sha256(lines[-1]).hexdigest(), kind="final_claim")]
    )
    return Expected(Kind.ADDED, at(segment, len(lines)))


@mutator
def a_segment_cut_in_a_line(s: Scene) -> Expected:
    segment = s.rng.choice(s.segments())
    data = s.files[segment]
    cuts = [n for n in range(1, len(data)) if data[n - 1] != 10]
    s.files[segment] = data[: s.rng.choice(cuts)]
    return Expected(Kind.TRUNCATED, segment)


@mutator
def a_last_newline_gone(s: Scene) -> Expected:
    segment = s.rng.choice(s.segments())
    s.files[segment] = s.files[segment][:-1]
    return Expected(Kind.TRUNCATED, segment)


# -- segments


@mutator
def the_last_segments_dropped(s: Scene) -> Expected:
    count = s.rng.randint(1, len(s.segments()) - 1)
    dropped = s.segments()[-count:]
    for name in dropped:
        del s.files[name]
    return Expected(Kind.TRUNCATED, dropped[0])


@mutator
def a_segment_dropped(s: Scene) -> Expected:
    segment = s.some_segment()
    del s.files[segment]
    return Expected(Kind.MISSING, segment)


@mutator
def two_segments_exchanged(s: Scene) -> Expected:
    left, right = sorted(s.rng.sample(s.segments(), 2))
    s.files[left], s.files[right] = s.files[right], s.files[left]
    return Expected(Kind.REORDERED, left)


@mutator
def a_segment_over_another(s: Scene) -> Expected:
    source, target = s.rng.sample(s.segments(), 2)
    s.files[target] = s.files[source]
    return Expected(Kind.CHANGED, target)


@mutator
def a_segment_added(s: Scene) -> Expected:
    name = f"ledger/{len(s.segments()) + s.rng.randint(1, 5):06d}.jsonl"
    s.files[name] = s.files[s.rng.choice(s.segments())]
    return Expected(Kind.ADDED, name)


@mutator
def cut_at_a_border_and_the_seal_s_list_with_it(s: Scene) -> Expected:
    count = s.rng.randint(1, len(s.segments()) - 1)
    dropped = s.segments()[-count:]
    for name in dropped:
        del s.files[name]
    seal = WorkSeal.model_validate_json(s.files[SEAL])
    ledger = seal.ledger.model_copy(update={"segments": seal.ledger.segments - count})
    reseal(s, ledger=ledger, objects=[o for o in seal.objects if o.path not in dropped])
    return Expected(Kind.TRUNCATED, "ledger")


@mutator
def the_chain_recomputed_from_a_line_on(s: Scene) -> Expected:
    segment, i, _ = s.some_line()
    rechain(s, segment, i)
    return Expected(Kind.CHANGED, segment)


# -- files


@mutator
def a_blob_changed(s: Scene) -> Expected:
    name = s.rng.choice(s.blobs())
    s.files[name] = s.rng.choice([b"", s.files[name] + b"x", s.files[name][:-1], s.rng.randbytes(9)])
    return Expected(Kind.CHANGED, name)


@mutator
def a_blob_missing(s: Scene) -> Expected:
    name = s.rng.choice(s.blobs())
    del s.files[name]
    return Expected(Kind.MISSING, name)


@mutator
def a_blob_missing_and_left_out_of_the_seal(s: Scene) -> Expected:
    told = b"".join(s.files[segment] for segment in s.segments())
    name = s.rng.choice([name for name in s.blobs() if name.removeprefix("blobs/").encode() in told])
    del s.files[name]
    reseal(s, objects=[o for o in WorkSeal.model_validate_json(s.files[SEAL]).objects if o.path != name])
    return Expected(Kind.MISSING, "ledger/")


@mutator
def two_blobs_exchanged(s: Scene) -> Expected:
    left, right = s.rng.sample(s.blobs(), 2)
    s.files[left], s.files[right] = s.files[right], s.files[left]
    return Expected(Kind.CHANGED, left)


@mutator
def a_file_changed(s: Scene) -> Expected:
    name = s.rng.choice([n for n in s.files if n.startswith("snapshots/") or n in ("run.json", "state.tar.zst")])
    s.files[name] += b"x"
    return Expected(Kind.CHANGED, name)


@mutator
def a_file_missing(s: Scene) -> Expected:
    name = s.rng.choice([n for n in s.files if n.startswith("snapshots/") or n in ("run.json", "state.tar.zst")])
    del s.files[name]
    return Expected(Kind.MISSING, name)


@mutator
def a_file_added(s: Scene) -> Expected:
    name = s.rng.choice(["blobs/" + s.rng.randbytes(32).hex(), "snapshots/9999.tar.zst", "notes.txt", "verify-notes.json"])
    s.files[name] = b"x"
    return Expected(Kind.ADDED, name)


# -- seals


@mutator
def a_field_of_the_seal_changed(s: Scene) -> Expected:
    change_field(s, SEAL, ["reason", "valid", "turns", "workingSeconds", "state", "run", "ledger", "trial", "objects", "tokens"])
    return Expected(Kind.CHANGED, SEAL)


@mutator
def the_seal_garbled(s: Scene) -> Expected:
    raw = s.files[SEAL]
    s.files[SEAL] = s.rng.choice(
        [b"", b"{}", b"null", b"[" * 9000, raw[: s.rng.randrange(len(raw))], raw.replace(b'"schema":"r', b'"schema":"x')]
    )
    return Expected(Kind.CHANGED, SEAL)


@mutator
def the_seal_gone(s: Scene) -> Expected:
    del s.files[SEAL]
    return Expected(Kind.UNSEALED, SEAL)


@mutator
def the_seal_says_other_than_the_ledger(s: Scene) -> Expected:
    field, value = s.rng.choice(
        [("reason", "Deadline"), ("turns", 3), ("run", "sha256:" + "5" * 64), ("state", "sha256:" + "5" * 64)]
    )
    reseal(s, **{field: value})
    return Expected(Kind.CHANGED, SEAL)


@mutator
def the_seal_of_another_trial(s: Scene) -> Expected:
    trial = WorkSeal.model_validate_json(s.files[SEAL]).trial
    field, value = s.rng.choice([("ordinal", 77), ("attempt", 9), ("sweep_uid", "x"), ("task", "beta-2"), ("repeat", 3)])
    reseal(s, trial=trial.model_copy(update={field: value}))
    return Expected(Kind.SWAPPED, "")


@mutator
def a_field_of_the_verdict_s_seal_changed(s: Scene) -> Expected:
    change_field(s, VERIFY, ["reward", "reason", "verify", "workSeal", "image", "objects"])
    return Expected(Kind.CHANGED, VERIFY)


@mutator
def the_verdict_changed(s: Scene) -> Expected:
    name = s.rng.choice(["verify-1/verdict.json", "verify-1/logs.txt"])
    s.files[name] = b'{"reward":"0"}'
    return Expected(Kind.CHANGED, name)


@mutator
def the_verdict_missing(s: Scene) -> Expected:
    name = s.rng.choice(["verify-1/verdict.json", "verify-1/logs.txt"])
    del s.files[name]
    return Expected(Kind.MISSING, name)


@mutator
def a_file_beside_the_verdict(s: Scene) -> Expected:
    name = f"verify-1/{s.rng.randbytes(4).hex()}"
    s.files[name] = b""
    return Expected(Kind.ADDED, name)


@mutator
def the_verdict_of_another_attempt(s: Scene) -> Expected:
    for name in [n for n in s.files if n.startswith("verify-1/")]:
        s.files[name] = s.other[name]
    return Expected(Kind.SWAPPED, VERIFY)


@mutator
def a_verdict_under_another_number(s: Scene) -> Expected:
    number = s.rng.randint(2, 9)
    for name in [n for n in s.files if n.startswith("verify-1/")]:
        s.files[name.replace("verify-1", f"verify-{number}")] = s.files[name]
    return Expected(Kind.SWAPPED, f"verify-{number}/seal.json")


# -- whole attempts


@mutator
def attempts_swapped(s: Scene) -> Expected:
    s.files.clear()
    s.files.update(s.other)
    return Expected(Kind.SWAPPED, "trials/")


@mutator
def the_ledger_of_another_attempt(s: Scene) -> Expected:
    count = len(s.segments())
    for name in s.segments():
        del s.files[name]
    for name in sorted(n for n in s.other if n.startswith("ledger/"))[:count]:
        s.files[name] = s.other[name]
    return Expected(Kind.SWAPPED, "ledger/000001.jsonl")


@mutator
def everything_recomputed(s: Scene) -> Expected:
    segment, i, _ = s.some_line()
    rechain(s, segment, i)
    lines = [line for name in s.segments() for line in s.lines(name)]
    seal = WorkSeal.model_validate_json(s.files[SEAL])
    ledger = seal.ledger.model_copy(update={"last_hash": hashlib.sha256(lines[-1]).hexdigest()})
    reseal(s, ledger=ledger, objects=[_object(o.path, s.files[o.path]) for o in seal.objects])
    return Expected(Kind.ANCHOR, SEAL, anchor=True)


@mutator
def what_nothing_else_tells_recomputed(s: Scene) -> Expected:
    reseal(s, **s.rng.choice([{"working_seconds": "1.000"}, {"started_at": "x"}, {"limit": "turns"}]))
    return Expected(Kind.ANCHOR, SEAL, anchor=True)


@mutator
def a_reward_recomputed(s: Scene) -> Expected:
    seal = VerifySeal.model_validate_json(s.files[VERIFY])
    s.files[VERIFY] = seal.model_copy(update={"reward": s.rng.choice(["0", "0.5", "2"])}).seal()
    return Expected(Kind.ANCHOR, "verify-*/seal.json", anchor=True)


def change_field(s: Scene, name: str, fields: list[str]) -> None:
    """Another value of the same shape; the checksum stays."""
    body = json.loads(s.files[name])
    field = s.rng.choice(fields)
    value = body[field]
    if isinstance(value, dict):
        key = s.rng.choice(sorted(value))
        body[field][key] = other_than(value[key])
    elif isinstance(value, list):
        s.rng.choice(value)["size"] += 1
    else:
        body[field] = other_than(value)
    s.files[name] = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def other_than(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value in ("EXEC", "COLLAB"):
        return "EXEC" if value == "COLLAB" else "COLLAB"
    text = str(value)
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def reseal(s: Scene, **changes: Any) -> None:
    """A work seal that says something else and is whole; the verdict's seal follows it."""
    seal = WorkSeal.model_validate_json(s.files[SEAL]).model_copy(update=changes)
    s.files[SEAL] = seal.seal()
    verdict = VerifySeal.model_validate_json(s.files[VERIFY])
    digest = "sha256:" + hashlib.sha256(s.files[SEAL]).hexdigest()
    s.files[VERIFY] = verdict.model_copy(update={"work_seal": digest, "trial": seal.trial}).seal()


def rechain(s: Scene, segment: str, index: int) -> None:
    """Change a line and recompute every hash after it."""
    previous: str | None = None
    for name in [n for n in s.segments() if n >= segment]:
        lines = s.lines(name)
        for i, line in enumerate(lines):
            if name == segment and i < index:
                continue
            if previous is None:
                lines[i] = edited(line, t="2020-01-01T00:00:00.000Z")
            else:
                lines[i] = edited(line, prev=previous)
            previous = hashlib.sha256(lines[i]).hexdigest()
        s.put(name, lines)


def _object(path: str, data: bytes) -> SealedObject:
    return SealedObject(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
