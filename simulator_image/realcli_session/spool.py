"""`python3 -m realcli_session.spool`: the spool of a session that waits for storage, as a tar stream on standard output.

`realcli ledger recover` runs it by exec. It needs little memory, because it shares the container's with the session. Names in the
stream are the attempt's; `spool.json` comes first. Exit status: realcli.ledger.spool.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from realcli.ledger.spool import CAME_BACK, NOT_BLOCKED, SPOOL_FILE, Spool


def main() -> int:
    """0 if all of it was written."""
    spool = Path(os.environ.get("REALCLI_SPOOL", "/spool"))
    try:
        return export(spool, sys.stdout.buffer)
    except FileNotFoundError as error:
        if (spool / SPOOL_FILE).exists():
            raise
        print(f"storage came back while the spool was copied ({error.filename} went up)", file=sys.stderr)
        return CAME_BACK


def export(spool: Path, out: BinaryIO) -> int:
    """Write the stream. FileNotFoundError where a file went up meanwhile."""
    try:
        raw = (spool / SPOOL_FILE).read_bytes()
    except FileNotFoundError:
        print("the session does not wait for storage: everything that is complete lies there", file=sys.stderr)
        return NOT_BLOCKED
    found = Spool.model_validate_json(raw)
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        archive.add(spool / SPOOL_FILE, SPOOL_FILE)
        for name, path in _files(spool, found):
            archive.add(path, name, recursive=False)
    return 0


def _files(spool: Path, found: Spool) -> Iterator[tuple[str, Path]]:
    for folder in ("ledger", "blobs"):
        for path in sorted((spool / folder).iterdir()):
            if path.stat().st_size or folder == "blobs":  # the segment that was opened last may be empty
                yield f"{folder}/{path.name}", path
    stored = {item.path for item in found.stored}
    for name, relative in sorted(found.files.items()):
        if name not in stored:
            yield name, spool / relative


if __name__ == "__main__":
    sys.exit(main())
