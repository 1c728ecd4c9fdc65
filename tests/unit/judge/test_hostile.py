"""Text of an agent on a page: nothing is markup, nothing hides."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_judge.hostile import hidden, marked, shorten, visible


class Reader(HTMLParser):
    """What a browser would make of it: tags and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert (tag, attrs) == ("span", [("class", "hid")])
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


ROWS = [
    ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("\" onmouseover='x'", "&#34; onmouseover=&#39;x&#39;"),
    ("a\u202eb", 'a<span class="hid">U+202E</span>b'),
    ("\x1b[31m", '<span class="hid">U+001B</span>[31m'),
    ("zero\u200bwidth\ufeff", 'zero<span class="hid">U+200B</span>width<span class="hid">U+FEFF</span>'),
    ("\x00\x07\r", "".join(f'<span class="hid">U+{c}</span>' for c in ("0000", "0007", "000D"))),
    ("\u2066\u2069\u061c\u200e", "".join(f'<span class="hid">U+{c}</span>' for c in ("2066", "2069", "061C", "200E"))),
    ("\U000e0041", '<span class="hid">U+E0041</span>'),  # a tag character: text only a model reads
    ("a\u00a0b\u2003c\u3164", 'a<span class="hid">U+00A0</span>b<span class="hid">U+2003</span>c<span class="hid">U+3164</span>'),
    ("\u2028\u2029\x85", "".join(f'<span class="hid">U+{c}</span>' for c in ("2028", "2029", "0085"))),
    ("e\u0301\u0302\u0303\u0304", 'e\u0301\u0302\u0303<span class="hid">U+0304</span>'),
    ("tab\tand\nline\r\nend", "tab\tand\nline\nend"),
    ("Grüße, 世界, שלום 🙂", "Grüße, 世界, שלום 🙂"),
]


@pytest.mark.parametrize(("text", "html"), ROWS, ids=[repr(row[0]) for row in ROWS])
def test_visible(text: str, html: str) -> None:
    assert str(visible(text)) == html


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_text(text: str) -> None:
    html = str(visible(text))
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not any(hidden(char) for char in html)
    assert reader.text == "".join(f"U+{ord(char):04X}" if shown else char for char, shown in marked(text))
    assert len(reader.tags) == sum(shown for _, shown in marked(text))


def test_shorten() -> None:
    assert shorten("short", 10) == ("short", 0)
    text, left = shorten("a" * 60 + "b" * 60, 30)
    assert (text, left) == ("a" * 20 + "\n[… 90 characters left out …]\n" + "b" * 10, 90)
