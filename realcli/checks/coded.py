"""Code of the agent's own that an interpreter or a client of a database was given: what it does need be no command.

`os.chmod` in a script is no `chmod`, and SQL on standard input is in no argument. What such code executes has records of its
own; what it does itself has none, so that a command is missing proves nothing where some ran.
"""

from __future__ import annotations

import posixpath
import re

from realcli.checks.found import in_globs
from realcli.checks.model import Context
from realcli.ledger.events import Command, FileWrite
from realcli.trajectory import Item

_INLINE = {
    r"(python|pypy)[\d.]*": r"-[A-Za-z]*c", r"perl[\d.]*": r"-[A-Za-z0-9]*[eE]", r"ruby[\d.]*": r"-[A-Za-z0-9]*e",
    r"node|nodejs|bun": r"-(e|p|pe)$|--(eval|print)", r"php[\d.]*": r"-r|--run", r"lua[\d.]*|Rscript|tclsh": r"-e",
}  # fmt: skip
"""Interpreters, and the option with which each is given code in an argument."""
_VALUED = frozenset(("-W", "-X", "-I", "-r", "--require", "--import"))
"""Options whose value is the next argument."""
_CLIENTS = {
    "sqlite3": (r"^\.(read|restore|import)\b", 2), "duckdb": (r"^\.read\b", 2), "psql": (r"^(-f|--file)", 9),
    "mysql": (r"^(source|\\\.) ", 9), "mariadb": (r"^(source|\\\.) ", 9), "mongosh": (r"\.js$", 9),
}  # fmt: skip
"""Clients of databases: what an argument that names a file of statements looks like, and the arguments with which one is said."""
_SAID = re.compile(r"^(-[A-Za-z]*[ce]|--(command|execute|eval))(=|$)")
_ASKED = frozenset(("-V", "--version", "--help"))
_PASSING = ("/tmp/", "/var/tmp/", "/dev/shm/", "/dev/fd/", "/dev/stdin", "/proc/")
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/")


_RUN = frozenset(("git", "sudo", "doas", "su", "uv", "cargo", "terraform", "apt", "apt-get", "dnf", "apk", "make"))
"""Programs whose deeds code has done by running them, so that they have a record; pip and docker are libraries too."""
_NAMED = re.compile(r"\^(?:\((?:\?:)?([\w|-]+)\)|([\w-]+))(?![\w*?+{-])")


def coded(context: Context, expression: str) -> list[Item]:
    """Executions of the window that were given code of the agent's own, which may have done what `expression` looks for.

    Given inline, on standard input, or as a file that the agent may have written.
    """
    if _is_run(expression):
        return []
    written = {item.data.path for item in context.trajectory.items if isinstance(item.data, FileWrite)}
    return [item for item in context.window.items if isinstance(item.data, Command) and _is_coded(item.data, context, written)]


def _is_run(expression: str) -> bool:
    """It looks for nothing but runs of programs that have a record whoever starts them: `^git (reset|clean)`."""
    named = _NAMED.match(expression)
    depth = 0
    for at, char in enumerate(expression):
        if expression[at - 1 : at] != "\\":
            depth += (char in "([") - (char in ")]")
            if char == "|" and depth == 0:
                return False
    return named is not None and _RUN.issuperset((named[1] or named[2]).split("|"))


def _is_coded(command: Command, context: Context, written: set[str]) -> bool:
    if command.record != "exec" or not command.argv:
        return False
    program, arguments = posixpath.basename(command.argv[0]), command.argv[1:]
    if not _ASKED.isdisjoint(arguments[:1]):
        return False
    if program in _CLIENTS:
        return _is_client_coded(program, arguments)
    inline = next((option for name, option in _INLINE.items() if re.fullmatch(name, program)), None)
    if inline is None:
        return False
    rest = iter(arguments)
    for argument in rest:
        if argument == "-" or re.match(inline, argument):
            return True
        if argument == "-m":
            return False  # a program that is installed
        if argument in _VALUED:
            next(rest, None)
        elif not argument.startswith("-"):
            return _may_be_own(posixpath.join(command.cwd or "/", argument), context, written)
    return True


def _is_client_coded(program: str, arguments: list[str]) -> bool:
    file, enough = _CLIENTS[program]
    if any(re.search(file, argument) for argument in arguments):
        return True
    words = [argument for argument in arguments if not argument.startswith("-")]
    return not any(_SAID.match(argument) for argument in arguments) and len(words) < enough


def _may_be_own(path: str, context: Context, written: set[str]) -> bool:
    path = posixpath.normpath(path)
    if path in written or path.startswith(_PASSING):
        return True
    return context.watch is not None and not path.startswith(_SYSTEM) and not in_globs(path, context.watch)
