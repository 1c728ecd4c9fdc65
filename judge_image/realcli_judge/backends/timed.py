"""An answer that has to come whole in time: a client's own limits are those between two bytes, and one a second is never late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from realcli_judge.backends.calling import TIMEOUT

MAX_ANSWER = 64 << 20  # bytes of one answer; a judge's are thousands
Hooks = dict[str, list[Callable[..., Any]]]


def hooks(library: Any, seconds: float = TIMEOUT, most: int = MAX_ANSWER, now: Callable[[], float] = time.monotonic) -> Hooks:
    """Of a client of `library`, httpx or its successor httpx2: the body of an answer is read so long and so far.

    What ends it is what the library itself raises where an answer stops, so that it is asked for again.
    """

    class Timed(library.SyncByteStream):  # type: ignore[misc]  # each library reads streams of its own class alone
        def __init__(self, inner: Any, end: float) -> None:
            self._inner, self._end = inner, end

        def __iter__(self) -> Iterator[bytes]:
            read = 0
            for chunk in self._inner:
                read += len(chunk)
                if now() > self._end:
                    raise library.ReadTimeout(f"the answer is not whole in time, after {read} bytes")
                if read > most:
                    raise library.ReadError(f"the answer has more than {most} bytes")
                yield chunk

        def close(self) -> None:
            self._inner.close()

    def begun(response: Any) -> None:
        response.stream = Timed(response.stream, now() + seconds)

    return {"response": [begun]}
