"""Writes the table of docs/simulator.md: what the guards of the simulated user catch, style by style.

python hack/leak_table.py [messages]       default 100000, which takes a few minutes
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support import leak_run, leaking_models  # noqa: E402

PAGE = ROOT / "docs" / "simulator.md"
BEGIN, END = "<!-- leak table -->", "<!-- end of leak table -->"


def table(messages: int) -> str:
    each = -(-messages // (len(leaking_models.STYLES) + 1))
    counts = {style: asyncio.run(leak_run.run(style, each, seed=0)) for style in [None, *leaking_models.STYLES]}
    rows = [
        "| how the model leaks | drafts that leak | discarded | most often by | literal leaks delivered |",
        "|---|---|---|---|---|",
    ]
    for style, count in counts.items():
        if style is not None:
            by = ", ".join(f"`{name}`" for name, _ in count.by.most_common(3)) or "none"
            rows.append(f"| {style} | {count.drafts} | {100 * count.caught / count.drafts:.1f} % | {by} | {count.literal} |")
    honest = counts[None]
    total = sum(count.messages for count in counts.values())
    unlicensed = sum(count.unlicensed for count in counts.values())
    said = (
        f"{total} messages, {unlicensed} of them neither canonical nor a draft that passed. "
        f"Of {honest.drafts} honest drafts {honest.caught} were discarded."
    )
    return "\n".join([BEGIN, *rows, "", said, END])


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    made = table(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    PAGE.write_text(before + made + after, encoding="utf-8")


if __name__ == "__main__":
    main()
