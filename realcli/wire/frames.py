"""Frames: a 12-byte prefix, a small JSON header that routes, and a payload.

```
"RCW1"  header length (u32 BE, 1..65536)  payload length (u32 BE, 0..1048576)  header  payload
```
The version is part of the mark, so another version is refused at the first byte pair, not misread. Nothing is allocated
from a length that was not checked. Arguments and results travel as JSON in the payload, so a header never grows with them.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final, NamedTuple

MARK: Final = b"RCW1"
MAX_HEADER: Final = 64 * 1024
MAX_PAYLOAD: Final = 1024 * 1024
_PREFIX: Final = struct.Struct(">4sII")


class ProtocolError(Exception):
    """The bytes are not this protocol. The connection cannot be used any more."""


class Frame(NamedTuple):
    """One message. `header["t"]` is its kind (`realcli.wire.protocol.Kind`)."""

    header: dict[str, Any]
    payload: bytes

    @property
    def kind(self) -> str:
        """The kind, not yet checked against the vocabulary."""
        return str(self.header["t"])

    def number(self, field: str) -> int:
        """A non-negative integer of the header below 2**53, else ProtocolError."""
        value = self.header.get(field)
        if type(value) is not int or not 0 <= value < 1 << 53:
            raise ProtocolError(f"{self.kind} frame: {field} must be a non-negative integer, found {str(value)[:40]!r}")
        return value


def encode(header: dict[str, Any], payload: bytes | memoryview = b"") -> bytes:
    """Bytes of a frame. ValueError when over a limit: the caller has to split, not the receiver to cope."""
    head = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(head) > MAX_HEADER:
        raise ValueError(f"frame header of {len(head)} bytes, at most {MAX_HEADER} are allowed")
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"frame payload of {len(payload)} bytes, at most {MAX_PAYLOAD} are allowed")
    return b"".join((_PREFIX.pack(MARK, len(head), len(payload)), head, payload))


class FrameDecoder:
    """Turns a byte stream, cut anywhere, into frames. Holds at most one frame and what was fed last."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._broken: str | None = None

    @property
    def buffered(self) -> int:
        """Bytes of an unfinished frame: at the end of the stream anything but 0 means that it was cut."""
        return len(self._buffer)

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Frames completed by `data`. ProtocolError as soon as it is certain, then for every further call.

        Frames that were complete before the damage, in the same call, are lost with it.
        """
        if self._broken is not None:
            raise ProtocolError(self._broken)
        try:
            return self._feed(data)
        except ProtocolError as error:
            self._broken = str(error)
            self._buffer.clear()
            raise

    def _feed(self, data: bytes | memoryview) -> list[Frame]:
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        view = self._buffer
        while True:
            have = len(view) - start
            if have < _PREFIX.size:
                mark = bytes(view[start : start + len(MARK)])
                if not MARK.startswith(mark):
                    raise ProtocolError(f"expected {MARK!r}, found {mark!r}")
                break
            mark, header_length, payload_length = _PREFIX.unpack_from(view, start)
            if mark != MARK:
                raise ProtocolError(f"expected {MARK!r}, found {mark!r}")
            if not 0 < header_length <= MAX_HEADER:
                raise ProtocolError(f"header length {header_length} is not in 1..{MAX_HEADER}")
            if payload_length > MAX_PAYLOAD:
                raise ProtocolError(f"payload length {payload_length} is over {MAX_PAYLOAD}")
            head_end = start + _PREFIX.size + header_length
            end = head_end + payload_length
            if len(view) < end:
                break
            header = _parse_header(bytes(view[start + _PREFIX.size : head_end]))
            frames.append(Frame(header, bytes(view[head_end:end])))
            start = end
        if start:
            del view[:start]
        return frames


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _parse_header(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"header is not JSON in ASCII: {error}") from None
    if not isinstance(header, dict) or not isinstance(header.get("t"), str):
        raise ProtocolError("header is not an object with a text field t")
    return header
