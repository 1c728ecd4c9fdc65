"""Structured questions as two programs ask them: a list `questions`, each with a text and options. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def question_text(asked: Mapping[str, Any]) -> str:
    """As the user would read it: each question, its options below."""
    parts = []
    for question in objects(asked.get("questions")):
        lines = [str(question.get("question", ""))]
        for option in objects(question.get("options")):
            note = option.get("description")
            lines.append(f"- {option.get('label', '')}" + (f": {note}" if note else ""))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def question_parts(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The single questions of a call that asks several; () for one."""
    questions = tuple(str(question.get("question", "")) for question in objects(asked.get("questions")))
    return questions if len(questions) > 1 else ()


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list, nothing of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
