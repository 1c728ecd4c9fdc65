"""What init containers do: private copies of the pod's shared files, the authorities for storage, the toolkit tree.

The kubelet and the runtime give all containers of a pod one writable `/etc/hosts` and `/etc/resolv.conf`; an agent that is
root would redirect the session with them. `prepare` copies both into one volume per container, which is mounted over them.
"""

from __future__ import annotations

from typing import Final

COPIES: Final = "/run/copies"
PREPARED: Final = "/run/prepared"
CA_BUNDLE: Final = f"{PREPARED}/ca.pem"
CA_SECRET: Final = "/run/ca-secret"
SHARED_FILES: Final = ("hosts", "resolv.conf")

PREPARE: Final = """\
import os, pathlib, sys
_, etc, copies, secret, bundle = sys.argv
for target in pathlib.Path(copies).iterdir() if os.path.isdir(copies) else ():
    for name in ("hosts", "resolv.conf"):
        (target / name).write_bytes(pathlib.Path(etc, name).read_bytes())
        (target / name).chmod(0o644)
from botocore.httpsession import where
text = pathlib.Path(where()).read_text()
own = pathlib.Path(secret, "ca.crt")
if own.exists():
    text += "\\n" + own.read_text()
pathlib.Path(bundle).write_text(text)
"""
"""argv: folder of the shared files, folder of the copies (one below per container), the Secret's folder, the bundle."""

COPY_TREE: Final = """\
import os, shutil, sys
_, source, target = sys.argv
for name in ("bin", "lib", "share", "runner", "agent"):
    if os.path.isdir(os.path.join(source, name)):
        shutil.copytree(os.path.join(source, name), os.path.join(target, name), symlinks=True)
"""
"""argv: root of the tree, target. Runs in the toolkit image itself, which holds nothing else."""


COPY_IMAGE: Final = """\
import os, shutil, sys
_, target = sys.argv
for name in sorted(os.listdir("/")):
    source, skipped = "/" + name, {"proc", "sys", "dev"}
    if name in skipped or os.path.ismount(source):
        continue
    if os.path.isdir(source) and not os.path.islink(source):
        keep = shutil.ignore_patterns("realcli", "target") if name == "opt" else None
        shutil.copytree(source, os.path.join(target, name), symlinks=True, ignore=keep)
    else:
        shutil.copy2(source, os.path.join(target, name), follow_symlinks=False)
"""
"""argv: target. Runs in a tool image, whose root it copies, without what is mounted there."""


def copy_image_command() -> list[str]:
    """Command of the init container that copies a tool image; the toolkit's own Python runs in it."""
    home = "/opt/realcli"
    clean = [f"{home}/bin/clean", f"{home}/lib/ld-linux-x86-64.so.2"]  # whatever the image sets for its own loader
    loader = [*clean, "--argv0", f"{home}/bin/python3", "--library-path", f"{home}/lib"]
    return [*loader, f"{home}/bin/python3.real", "-I", "-c", COPY_IMAGE, "/opt/target"]


def prepare_command() -> list[str]:
    """Command of the init container `prepare`."""
    return ["python", "-c", PREPARE, "/etc", COPIES, CA_SECRET, CA_BUNDLE]


def copy_command() -> list[str]:
    """Command of the init container that copies a toolkit image to the volume, started by the tree's own loader."""
    loader = ["/lib/ld-linux-x86-64.so.2", "--argv0", "/bin/python3", "--library-path", "/lib", "/bin/python3.real"]
    return [*loader, "-I", "-c", COPY_TREE, "/", "/target"]
