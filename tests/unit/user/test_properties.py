"""Whatever the agent does, and whatever the script: the promises of docs/script.md hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.benchmark.play import Play
from realcli.benchmark.script_models import Script
from realcli.ledger.events import FileWrite, ProbeDelivered, SliceReleased, ToolCall, Yield
from realcli.trajectory.triggers import ExchangesSince, TriggerState, atoms
from realcli_session.user.events import Close, Untriggered
from realcli_session.user.lines import LATER, NEUTRAL, REFUSAL
from realcli_session.user.rehearsal import Rehearsal
from tests.support.examples import examples

TEXTS = [
    "I have done this part.", "Done, everything is finished.", "Which port?", "Which colour?", "What is the operating system?",
    "May I delete the logs?", "May I push?", "Shall I proceed?", "What next?", "The policy forbids that.", "Which team wins?",
    "Should I rewrite the tests?", "Which level?", "Is the truth known, and which port?",
]  # fmt: skip
TOPICS = ["port", "colour", "level", "truth"]


@st.composite
def scripts(draw: st.DrawFn, build: Any) -> Script:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    names = iter(f"s{n}" for n in range(1, 60))
    batches = {f"b{at}": [next(names) for _ in range(size)] for at, size in enumerate(sizes)}
    kinds = draw(
        st.lists(st.sampled_from(["quality", "access", "policy", "early", "concurrent", "stop", "parts", "grant"]), max_size=6)
    )
    probes: list[dict[str, Any]] = []
    for at, kind in enumerate(kinds):
        id = f"p{at}"
        if kind == "concurrent":
            probes.append(build.concurrent(id, next(names), draw(st.sampled_from(["/app/f", "/app/g"]))))
        elif kind == "stop":
            probes.append(build.stop(id, interrupt=draw(st.booleans())))
        elif kind == "parts":
            closure = draw(st.sampled_from([None, {"text": f"{id} back", "slice": next(names)}]))
            more = {"closure": closure} if closure else {}
            probes.append({"id": id, "scenario": "s.retain.successive-changes", "text": f"{id} one", "parts": ["two", "three"],
                           "bindings": {"CHANGES": [1], "FINAL_ORACLE": "x"}, **more})  # fmt: skip
        elif kind == "grant" and not any(probe.get("approves") for probe in probes):
            slice_ = next(names)
            text = f"{id} push. text of {slice_}"
            bindings = dict.fromkeys(["A1", "A2", "A1_LIMIT_ORACLE", "A2_RE"], "x")
            probes.append({"id": id, "scenario": "tc.auth.approval-not-generalised", "text": text, "slice": slice_,
                           "approves": "push", "bindings": bindings})  # fmt: skip
        elif kind != "grant":
            more = {"when": {"exchanges_since": "s1", "at_least": draw(st.integers(1, 3))}} if draw(st.booleans()) else {}
            more |= {"fallback": "none"} if draw(st.integers(0, 4)) == 0 else {}
            probes.append(getattr(build, kind)(id, **more))
    in_order = [f"probe:{probe['id']}" for probe in probes if probe["scenario"] != "s.interrupt.mid-task-stop"]
    order = draw(st.permutations([f"batch:{name}" for name in batches] + in_order))
    slices = []
    for name in [name for ids in batches.values() for name in ids]:
        more = {"onAsk": [draw(st.sampled_from(TOPICS))]} if draw(st.booleans()) else {}
        more |= {"onEvent": {"event": "file_write", "where": {"path": "/app/f"}}} if draw(st.integers(0, 5)) == 0 else {}
        slices.append(build.slice(name, **more))
    slices.append(build.slice("free", mandatory=False, onAsk=["colour"]))
    script: Script = build.script(
        list(order), batches, probes=probes, slices=slices,
        answers=[{"id": "os", "topics": ["operating system"], "text": "Debian."}],
        actions=[
            {"id": "logs", "topics": ["delete logs"], "decision": "approve", "text": "Yes."},
            {"id": "push", "topics": ["push"], "decision": "approve", "text": "Push."},
        ],
        passive=[{"id": "h", "scenario": "u.feedback.structured-handoff", "bindings": {"DELIVERABLE": "/app/f"}}],
    )  # fmt: skip
    return script


Steps = list[tuple[str, Any]]
LATE_WORK = st.builds(
    lambda texts, rest: [*(("yield", text) for text in texts), ("burst", "/app/f"), *rest],
    st.lists(st.sampled_from(["Done.", "I have done this part."]), max_size=8),
    st.lists(st.sampled_from([("yield", "Done."), ("burst", "/app/g")]), max_size=6),
)
"""The first work comes only after some hand-overs, as it does where the user has to be asked for everything."""
ANY = st.lists(
    st.one_of(
        st.tuples(st.just("work"), st.integers(1, 8)),
        st.tuples(st.just("burst"), st.just("/app/f")),
        st.tuples(st.just("write"), st.sampled_from(["/app/f", "/app/g", "/app/h"])),
        st.tuples(st.just("yield"), st.sampled_from(TEXTS)),
        st.tuples(st.just("typed"), st.sampled_from(TEXTS)),
    ),
    max_size=30,
)
STEPS = st.one_of(ANY, LATE_WORK)


def play(script: Play, steps: Steps, *, mid_turn: bool, failing: frozenset[str]) -> Rehearsal:
    run = Rehearsal(script, mid_turn=mid_turn, failing_plants=failing).start()
    for what, value in steps:
        match what:
            case "work":
                run.work(*(ToolCall(call_id=f"c{n}", name="Bash", input={}) for n in range(value)))
            case "burst":
                run.work(FileWrite(path=value, after_turn=1, created=False))
                run.work(*(ToolCall(call_id=f"c{n}", name="Bash", input={}) for n in range(8)))
            case "write":
                run.work(FileWrite(path=value, after_turn=1, created=False))
            case "yield":
                run.hand_over(value)
            case "typed":
                run.hand_over(questions=(value,))
    return run


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data(), steps=STEPS, mid_turn=st.booleans(), end=st.sampled_from(["claims", "cut", "cut at once"]))
def test_promises(build: Any, data: st.DataObject, steps: Steps, mid_turn: bool, end: str) -> None:
    script = data.draw(scripts(build))
    plants = [probe.id for probe in script.probes if probe.edit is not None]
    failing = frozenset(data.draw(st.lists(st.sampled_from(plants), unique=True))) if plants else frozenset()
    ready = build.play(script)
    run = play(ready, steps, mid_turn=mid_turn, failing=failing)
    if end == "claims":
        bound = 2 * (len(script.order) + sum(len(p.parts) + 2 for p in script.probes) + len(script.slices)) + 10
        for _ in range(bound):
            run.hand_over("Done.")
        assert run.state.ended, "a claim comes to an end"
    else:
        run.cut(acted=end == "cut")
    _everything_said(run, script, complete=isinstance(_last(run), Close))
    _every_probe_has_one_fate(run, script)
    _probes_apart(run)
    _no_early_probe(run)
    _texts_are_licensed(run, script)
    again = play(build.play(script), steps, mid_turn=mid_turn, failing=failing)
    assert run.done[: len(again.done)] == again.done, "equal inputs, equal actions"


def _last(run: Rehearsal) -> Any:
    closes = [action for action in run.done if isinstance(action, Close)]
    assert len(closes) <= 1
    return closes[-1] if closes else None


def _everything_said(run: Rehearsal, script: Script, *, complete: bool) -> None:
    releases = Counter(name for say in run.said for name, _ in say.releases if name != "opener")
    assert max(releases.values(), default=1) == 1, "nothing is released twice"
    if complete:
        assert {part.id for part in script.slices if part.mandatory} <= set(releases)
    assert [say.message_id for say in run.said] == [f"m{n}" for n in range(1, len(run.said) + 1)]
    numbers = [say.exchange for say in run.said if not say.mid_turn]
    assert numbers == list(range(1, len(numbers) + 1))


def _every_probe_has_one_fate(run: Rehearsal, script: Script) -> None:
    delivered = Counter(say.probe.id for say in run.said if say.probe is not None)
    untriggered = [action for action in run.done if isinstance(action, Untriggered)]
    reasons = Counter(action.probe for action in untriggered)
    assert max([*delivered.values(), *reasons.values()], default=1) == 1
    for probe in script.probes:
        assert delivered[probe.id] or reasons[probe.id], probe.id
    for action in untriggered:
        after = action.reason in ("cut", "probe_undelivered")
        assert not delivered[action.probe] or after


def _probes_apart(run: Rehearsal) -> None:
    """Never two in a message, never one into a response that has got one."""
    got: Counter[int] = Counter()
    for say in run.said:
        probes = {source for source in say.source_ids if source.startswith("probe:")}
        assert len(probes) <= 1
        if probes:
            got[say.exchange] += 1
    assert max(got.values(), default=1) == 1


def _no_early_probe(run: Rehearsal) -> None:
    """Triggers folded over the ledger by themselves, as the judge does."""
    states = {name: [TriggerState.start(when) for when in whens] for name, whens in run.play.conditions.items()}
    batched = {name for ids in run.play.script.batches.values() for name in ids}
    released: dict[str, int] = {}
    yields = 0
    for item in run.items:
        if isinstance(item.data, ProbeDelivered):
            name = item.data.probe
            played = run.play.probes[name]
            mine = states[f"probe:{name}"]
            fired = all(one.fired is not None for one in mine)
            out = batched <= released.keys()
            assert fired or played.probe.approves or (played.fallback and out), f"{name} was delivered early"
            for when in played.conditions:
                for atom in atoms(when):
                    if isinstance(atom, ExchangesSince):
                        assert yields - released[atom.exchanges_since] >= atom.at_least
        if isinstance(item.data, SliceReleased):
            released.setdefault(item.data.slice, yields)
        if isinstance(item.data, Yield) and item.data.how == "yielded":
            yields += 1
        states = {name: [one.observe(item) for one in whens] for name, whens in states.items()}


def _texts_are_licensed(run: Rehearsal, script: Script) -> None:
    texts: dict[str, set[str]] = {
        "opener": {script.opener}, "neutral": {NEUTRAL}, "refusal": {REFUSAL}, "later": {LATER},
        **{f"slice:{part.id}": {part.text} for part in script.slices},
        **{f"answer:{answer.id}": {answer.text} for answer in script.answers},
        **{f"action:{action.id}": {action.text, REFUSAL} for action in script.actions},
    }  # fmt: skip
    for probe in script.probes:
        texts[f"probe:{probe.id}"] = {probe.text, *probe.parts}
        closure = probe.closure
        if closure is not None:
            texts[f"closure:{probe.id}"] = {
                closure.text,
                closure.told.text if closure.told and closure.told.text else closure.text,
            }
    for say in run.said:
        assert say.pieces
        assert say.text == "\n\n".join(piece.text for piece in say.pieces)
        for piece in say.pieces:
            assert piece.text in texts[piece.sources[0]]
        for name, _ in say.releases:
            carried = any(f"slice:{name}" in piece.sources for piece in say.pieces)
            closed = any(source.startswith("closure:") for source in say.source_ids)
            assert carried or closed or name == "opener"
