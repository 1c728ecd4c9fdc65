"""What of an audit is left for a judge: messages worded by a model, and deviations of unknown harm. Pure.

The judge gets the script's texts, never a check, a verdict of Part A or the reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from realcli.audit.model import Deviation, SimCheck, SimName
from realcli.audit.pieces import Piece
from realcli.audit.replay import Said
from realcli.audit.view import View, texts_of
from realcli.benchmark.catalogue_models import Template
from realcli.checks.instance import Instance
from realcli.judging.reading import Reading

MESSAGE, HARM = "sim_message/", "sim_harm/"
ASPECTS: tuple[SimName, ...] = (
    "sim_script_fidelity",
    "sim_no_early_disclosure",
    "sim_probe_coverage",
    "sim_goal_stability",
    "sim_knowledge_bounds",
    "sim_no_agent_work",
)


@dataclass(frozen=True)
class AboutMessage:
    """A message that was worded by a model and that no program can settle."""

    said: Said
    text: str
    items: tuple[tuple[str, str], ...]  # (source, canonical text): what it had to say
    withheld: tuple[tuple[str, str], ...]  # (id, text): what had to be kept back
    knows: tuple[str, ...]

    @property
    def id(self) -> str:
        """As it is asked."""
        return MESSAGE + self.said.data.id

    @property
    def exchange(self) -> int:
        """Where it stands."""
        return self.said.item.event.exchange

    @property
    def aspects(self) -> tuple[SimName, ...]:
        """What is asked about it."""
        return tuple(one for one in ASPECTS if one != "sim_probe_coverage" or self.said.probes)


@dataclass(frozen=True)
class AboutDeviation:
    """Something the program found and cannot weigh. `place`: (check, number) in the records."""

    number: int
    place: tuple[SimName, int]
    deviation: Deviation
    exchange: int

    @property
    def id(self) -> str:
        """As it is asked."""
        return f"{HARM}{self.number}"


Asked = AboutMessage | AboutDeviation


def left_for_a_judge(view: View, checks: Sequence[SimCheck]) -> list[Asked]:
    """Messages first, then deviations. Empty for a run that is the script's own words and breaks nothing."""
    asked: list[Asked] = [about_message(view, one.said, one.said.text) for one in view.open if one.said.text is not None]
    for check in checks:
        if check.check == "sim_no_harmful_deviation":
            continue
        for at, deviation in enumerate(check.deviations):
            if deviation.harmful is None:
                exchange = view.trajectory.items[deviation.seq - 1].event.exchange if deviation.seq else 1
                number = sum(isinstance(one, AboutDeviation) for one in asked) + 1
                asked.append(AboutDeviation(number, (check.check, at), deviation, exchange))
    return asked


def about_message(view: View, said: Said, text: str) -> AboutMessage:
    """The question about one message."""
    script = view.script
    items = tuple((_named(piece), piece.texts[0]) for piece in said.pieces)
    after = said.after
    back = [(f"slice:{part.id}", part.text) for part in script.slices if part.id not in after.released]
    for probe in script.probes:
        if probe.id in after.waiting:
            back.append((f"probe:{probe.id}", "\n".join(texts_of(probe))))
    back += [(f"answer:{one.id}", one.text) for one in script.answers if f"answer:{one.id}" not in after.said]
    return AboutMessage(said, text, items, tuple(back), tuple(script.user_knows))


def _named(piece: Piece) -> str:
    return piece.sources[0]


def told(asked: Sequence[Asked], instances: Sequence[Instance], reading: Reading) -> str:
    """The questions in words, as they stand in a request."""
    parts = [_message(one, reading) for one in asked if isinstance(one, AboutMessage)]
    deviations = [one for one in asked if isinstance(one, AboutDeviation)]
    if deviations:
        parts.append("\n".join(["## Scenarios of this run", *(_scenario(one, reading) for one in instances)]))
        parts += [_deviation(one, reading) for one in deviations]
    return "\n\n".join(parts)


def _message(one: AboutMessage, reading: Reading) -> str:
    lines = [f"## Message {one.said.data.id} of exchange {one.exchange}, id {one.id}", f"aspects: {', '.join(one.aspects)}"]
    lines += [reading.fenced(f"had to say {name}", text) for name, text in one.items]
    lines.append(reading.fenced("said", one.text))
    lines += [reading.fenced(f"had to keep back {name}", text) for name, text in one.withheld]
    lines += [reading.fenced("knows besides", text) for text in one.knows]
    return "\n".join(lines)


def _scenario(instance: Instance, reading: Reading) -> str:
    stimulus = instance.scenario.stimulus if isinstance(instance.scenario, Template) else {}
    intent = " ".join(str(stimulus.get("user_intent") or "nothing is said for it").split())
    return f"- {instance.id}: {instance.scenario.name}. What the user does: {intent}"


def _deviation(one: AboutDeviation, reading: Reading) -> str:
    lines = [f"## Deviation in exchange {one.exchange}, id {one.id}", reading.fenced("found", one.deviation.what)]
    if one.deviation.quote is not None:
        lines.append(reading.fenced("said", one.deviation.quote))
    return "\n".join(lines)
