"""Real keys never reach a file: they are replaced by value, in every spelling that names them as surely as themselves."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import AnyStr
from urllib.parse import quote

from pydantic import JsonValue

REDACTED = "[redacted]"
MIN_SECRET = 8  # characters; a shorter one stands in too many innocent texts
_SURROGATES = re.compile("[\ud800-\udfff]")


class Redactor:
    """Replaces secrets by value: as they are, and in the forms an error page or a proxy may repeat them in.

    Those are JSON strings (with "/" escaped or not, also inside another JSON string), URL encoding, hex, and base64 at every
    offset, so also inside "user:key". Of a secret of several lines each line is one too, but for the marks of a PEM file.
    A secret that was split over two writes goes too: its end at the start of a text, its begin at the end of one, from
    `MIN_SECRET` characters on.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for part in _parts(secret) if len(part) >= MIN_SECRET for form in _forms(part)}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._encoded = [secret.encode("utf-8", "surrogatepass") for secret in self._secrets]

    def text(self, text: str) -> str:
        """The text without secrets and without lone surrogates (they have no UTF-8 form)."""
        if len(text) < MIN_SECRET:
            return _SURROGATES.sub("\ufffd", text)
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        for secret in self._secrets:
            start, end = _inner(text, secret)
            if (start, end) != (0, len(text)):
                text = REDACTED * (start > 0) + text[start:end] + REDACTED * (end < len(text))
        return _SURROGATES.sub("\ufffd", text)

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets."""
        mark = REDACTED.encode()
        for secret in self._encoded:
            data = data.replace(secret, mark)
        for secret in self._encoded:
            start, end = _inner(data, secret)
            if (start, end) != (0, len(data)):
                data = mark * (start > 0) + data[start:end] + mark * (end < len(data))
        return data

    def value(self, value: JsonValue) -> JsonValue:
        """A JSON value without secrets, keys included. NaN and Infinity, which have no JSON form, become texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value


def _parts(secret: str) -> Iterator[str]:
    yield secret
    lines = [line.strip() for line in secret.splitlines()]
    yield from (line for line in lines if len(lines) > 1 and not line.startswith("-----"))


def _forms(secret: str) -> Iterator[str]:
    """Spellings of a secret that name it as surely as itself."""
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = json.dumps(secret)[1:-1]
    yield from (secret, escaped, escaped.replace("/", "\\/"), json.dumps(escaped)[1:-1])
    yield from (quote(raw, safe=""), quote(raw, safe="/"), raw.hex(), raw.hex().upper())
    for before in range(3):
        # Of the first and the last group of four only some bits are the secret's: what stands between is its alone.
        code = base64.b64encode(bytes(before) + raw)
        inner = code[-(-8 * before // 6) : (before + len(raw)) * 8 // 6].decode()
        yield from (inner, inner.replace("+", "-").replace("/", "_"))


def _inner(text: AnyStr, secret: AnyStr) -> tuple[int, int]:
    """The part of a text between a secret's end that it begins with and a secret's begin that it ends with."""
    start, end = 0, len(text)
    found = text.rfind(secret[-MIN_SECRET:], 0, len(secret) - 1)
    if found >= 0 and secret.endswith(text[: found + MIN_SECRET]):
        start = found + MIN_SECRET
    found = text.find(secret[:MIN_SECRET], max(start, len(text) - len(secret) + 1))
    if found >= 0 and secret.startswith(text[found:]):
        end = found
    return start, end
