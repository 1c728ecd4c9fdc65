"""Contents of made-up files that are no plain text: archives, and what git keeps of a history."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence


def tar(files: Mapping[str, str]) -> bytes:
    """An archive of these files, the same bytes every time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as made:
        for name, text in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            made.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def repository(root: str, history: Sequence[Mapping[str, str]], branch: str = "main") -> dict[str, bytes]:
    """Files of a bare repository whose branch has these states, one commit each; absolute paths."""
    made = {f"{root}/HEAD": f"ref: refs/heads/{branch}\n".encode()}
    parent = ""
    for number, files in enumerate(history):
        tree = b""
        for name, text in sorted(files.items()):
            tree += b"100644 " + name.encode() + b"\0" + bytes.fromhex(_object(root, "blob", text.encode(), made))
        above = f"parent {parent}\n" if parent else ""
        who = f"A <a@example.org> {1_700_000_000 + number} +0000"
        text = f"tree {_object(root, 'tree', tree, made)}\n{above}author {who}\ncommitter {who}\n\nstate {number}\n"
        parent = _object(root, "commit", text.encode(), made)
    made[f"{root}/refs/heads/{branch}"] = f"{parent}\n".encode()
    return made


def _object(root: str, kind: str, data: bytes, made: dict[str, bytes]) -> str:
    whole = f"{kind} {len(data)}".encode() + b"\0" + data
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    made[f"{root}/objects/{name[:2]}/{name[2:]}"] = zlib.compress(whole)
    return name
