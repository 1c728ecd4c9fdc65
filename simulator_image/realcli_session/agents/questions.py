"""Structured questions as two programs ask them: a list `questions`, each with a text and options. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def question_text(asked: Mapping[str, Any]) -> str:
    """As the user would read it: each question, its options below."""
    return "\n\n".join(_single(asked))


def question_parts(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The single questions of a call that asks several, each with its options below; () for one."""
    questions = _single(asked)
    return questions if len(questions) > 1 else ()


def _single(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """A question and its options, as a message would list them: what is read of it does not depend on the channel."""
    found = []
    for question in objects(asked.get("questions")):
        lines = [str(question.get("question", ""))]
        for option in objects(question.get("options")):
            note = option.get("description")
            lines.append(f"- {option.get('label', '')}" + (f": {note}" if note else ""))
        found.append("\n".join(lines))
    return tuple(found)


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list, nothing of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
