"""The suite that docs/your-own-task.md builds, out of the page itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "your-own-task.md"
FILE = re.compile(r"^`mine/([^`]+)`[^\n]*\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = re.compile(r"^mkdir -p mine/tasks && cp -r (\S+) mine/tasks/(\S+)$", re.MULTILINE)
REMOVED = re.compile(r"^\(cd mine/tasks/\S+ && rm (.+)\)$", re.MULTILINE)
MADE = re.compile(r"^printf '(.+)' > mine/(\S+)$", re.MULTILINE)


def write_own_task(folder: Path) -> Path:
    """Do what the page says, below `folder`; the suite's folder."""
    page, mine = PAGE.read_text(), folder / "mine"
    (source, name), (removed,), (text, made) = COPIED.findall(page)[0], REMOVED.findall(page), MADE.findall(page)[0]
    task = mine / "tasks" / name
    shutil.copytree(ROOT / source, task)
    for path in removed.split():
        (task / path).unlink()
    (mine / made).write_text(text.replace("\\n", "\n"))
    for path, content in FILE.findall(page):
        (mine / path).write_text(content)
    return mine
