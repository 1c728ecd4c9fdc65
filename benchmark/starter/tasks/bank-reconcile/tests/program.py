"""Running the program of the result: as an ordinary user, in a directory of its own, with limits, on files made for the purpose."""

import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = "/app/reconcile.py"
NOBODY = 65534
SECONDS = 20  # of one run
TOTAL = 120  # of all runs: a program that hangs or dawdles fails its checks, it does not use up the verifier's own time
LIMIT = 1 << 20
MEMORY = 512 << 20  # half of the container's: the tests themselves are not to be killed for what the program takes


class Outcome:
    """Exit status and texts of one run."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def report(self):
        """The report; what is wrong with it is an error that says so."""
        assert self.status in (0, 1), f"ended with status {self.status}: {self.err[-300:]!r}"
        found = json.loads(self.out)
        assert isinstance(found, dict), "the report is no JSON object"
        return found


def reconcile(ledger, statement):
    """Outcome of the program on two files."""
    left = TOTAL - _Spent.seconds
    assert left > 0, f"the program has used up its {TOTAL} s"
    started = time.monotonic()
    place = tempfile.mkdtemp(prefix="run-")
    os.chown(place, NOBODY, NOBODY)
    try:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                ["python3", PROGRAM, str(ledger), str(statement)],
                cwd=place,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                start_new_session=True,
                preexec_fn=_limits,
            )
            try:
                status = process.wait(min(SECONDS, left))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"the program ran for more than {min(SECONDS, left):.0f} s") from None
            finally:
                _Spent.seconds += time.monotonic() - started
                _kill(process.pid)
                process.wait()
            return Outcome(status, _text(out), _text(err))
    finally:
        shutil.rmtree(place, ignore_errors=True)


class Files:
    """A directory the program may read, for the files of one check."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="check-"))
        self.root.chmod(0o755)

    def write(self, name, text):
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return path


class _Spent:
    """Time of all runs so far."""

    seconds = 0.0


def _limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _text(file):
    file.seek(0)
    return file.read(LIMIT).decode("utf-8", errors="replace")
