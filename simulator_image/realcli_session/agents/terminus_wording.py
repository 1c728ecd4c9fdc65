"""The words of Terminus-2: out of the pinned harbor wheel, unpacked by `hack/terminus_templates.py`, and our own for the user.

A reworded prompt would be another agent, so nothing here repeats them: `Wording` reads them from a folder that the session image
holds. The texts below are ours: Terminus-2 has no way to talk to a user, and COLLAB adds one (docs/terminus-2.md).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "REALCLI_TERMINUS_TEMPLATES"
FOLDER = Path("/opt/realcli/terminus-2/templates")
TEMPLATE = "terminus-json-plain.txt"
TEXTS = "wording.json"

USER_FIELD = "message_to_user"
CHANNEL = f"""\
You work together with a user who reads what you write and can answer. Beside the fields above your JSON may hold:
- "{USER_FIELD}": String that is shown to the user: a question, a report, an answer to what they said (optional)

If you send "{USER_FIELD}" with an empty commands array and without "task_complete": true, you wait for the user's answer. With
commands, or with "task_complete": true, you do not wait. Messages from the user stand between <user_message> and </user_message>
in front of the terminal's output; they may come while you work and may change or add to the task."""
MESSAGE = "<user_message>\n{text}\n</user_message>"

NAMES = frozenset(
    {
        *(
            "auto_corrected",
            "fixed_braces",
            "fixed_mixed",
            "no_json",
            "invalid_json",
            "invalid_json_content",
            "invalid_json_preview",
        ),
        *(
            "no_object",
            "text_before",
            "text_after",
            "not_an_object",
            "missing_fields",
            "analysis_type",
            "plan_type",
            "commands_type",
        ),
        *("complete_type", "command_type", "keystrokes_missing", "keystrokes_type", "duration_invalid", "duration_missing"),
        *("unknown_fields", "newline_missing", "order_joint", "wrong_order", "confirm", "response_type", "output_limited"),
        *(
            "feedback_error",
            "feedback_error_warnings",
            "feedback_warnings",
            "error_mark",
            "parsing_errors",
            "had_warnings",
            "summary",
        ),
        *("questions", "answers", "handoff_answers", "handoff_continue", "short_summary", "short_handoff", "last_handoff"),
        *(
            "fallback_reply",
            "truncated_warnings",
            "output_limit",
            "truncated",
            "mcp_heading",
            "mcp_stdio",
            "screen",
            "new_output",
        ),
    }
)


class WordingMissing(Exception):
    """The folder does not hold the words of Terminus-2; the message says which file and how to make them."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The first prompt and every other text, as formats with numbered fields."""

    template: str
    """With the fields `instruction` and `terminal_state`."""
    texts: Mapping[str, str]

    def say(self, name: str, *fields: object) -> str:
        """A text with its fields filled in."""
        return self.texts[name].format(*fields)

    def first_prompt(self, instruction: str, screen: str, *, channel: bool) -> str:
        """The first prompt; `channel` adds how to talk to the user, before the heading of the task."""
        template = self.template
        if channel:
            before = template.index("{instruction}")
            heading = template.rfind("\n", 0, template.rfind("\n", 0, before)) + 1
            template = f"{template[:heading]}{_literal(CHANNEL)}\n\n{template[heading:]}"
        return template.format(instruction=instruction, terminal_state=screen)


def user_message(text: str) -> str:
    """What the user says, as it stands in a prompt."""
    return MESSAGE.replace("{text}", text)


def folder() -> Path:
    """Where the words lie: `REALCLI_TERMINUS_TEMPLATES`, else the session image's place."""
    return Path(os.environ.get(FOLDER_VARIABLE) or FOLDER)


def load(place: Path | None = None) -> Wording:
    """Read them. WordingMissing where a file or a text is missing."""
    place = place or folder()
    try:
        template = (place / TEMPLATE).read_text("utf-8")
        texts = json.loads((place / TEXTS).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise WordingMissing(f"{place}: {error}; {_REMEDY}") from error
    lacking = NAMES - texts.keys() if isinstance(texts, dict) else NAMES
    if lacking or not all(f"{{{field}}}" in template for field in ("instruction", "terminal_state")):
        what = f"{TEXTS} lacks {', '.join(sorted(lacking))}" if lacking else f"{TEMPLATE} lacks its fields"
        raise WordingMissing(f"{place}: {what}; {_REMEDY}")
    return Wording(template, {name: str(texts[name]) for name in NAMES})


def digest(place: Path | None = None) -> str:
    """`sha256:<hex>` over names and contents of the folder, as `hack/terminus_templates.py` prints it. WordingMissing."""
    place = place or folder()
    try:
        lines = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in sorted(place.iterdir())]
    except OSError as error:
        raise WordingMissing(f"{place}: {error}; {_REMEDY}") from error
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def channel_digest() -> str:
    """Of the texts that COLLAB adds."""
    return f"sha256:{hashlib.sha256((CHANNEL + MESSAGE).encode()).hexdigest()}"


_REMEDY = f"make the folder with hack/terminus_templates.py FOLDER and set {FOLDER_VARIABLE} to it, or use the session image"


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
