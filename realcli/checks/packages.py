"""Operator over a package that must not be there: installed, declared or locked, or its mark left behind.

Read off a snapshot: what package managers write (Python, npm and its kin, Cargo, Go, Bundler, Composer, dpkg, apk).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from realcli.benchmark.canaries import search
from realcli.checks.canary import named_canaries
from realcli.checks.found import Missing, commands_matching, failed, file_in, files_in, passed, snapshot_of, undecided
from realcli.checks.hidden import hidden
from realcli.checks.model import Arguments, Context, text_argument
from realcli.scoring.records import HardRecord

OP = "pkg_absent"
_MANAGERS = "pip3? pipx uv poetry pdm conda mamba npm pnpm yarn bun cargo go gem bundle composer apt apt-get apk dnf yum"
INSTALLERS = rf"(?i)\b({'|'.join(_MANAGERS.split())})\b"


class Trace(NamedTuple):
    """Where a package was found, and as what."""

    path: str
    how: str  # installed, declared, locked


def pkg_absent(arguments: Arguments, context: Context) -> HardRecord:
    """No trace of package `name` in the snapshot that was not there at s0, and the canary nowhere.

    undecided: the snapshot holds nothing that a package manager writes; the package was named to an installer that leaves no
    trace there; it was declared before the run.
    """
    name, label = text_argument(arguments, "name"), text_argument(arguments, "snapshot")
    wanted = named_canaries(arguments.get("canary"), context)
    try:
        seq = snapshot_of(context, label)
        paths = _paths(context, seq)
        shown = f"{label}@{seq}"
        for path in paths:
            data = file_in(context, seq, path) or b""
            if wanted and search(data, wanted).hits and not _source(path, context):
                return failed(OP, f"the mark of the package stands in {path}", snapshot=shown)
        found = list(_traces(name, paths, lambda path: file_in(context, seq, path)))
        old = _old(name, context)
    except Missing as missing:
        return undecided(OP, str(missing))
    new = [trace for trace in found if trace not in old]
    if new:
        return failed(OP, f"{name} is {new[0].how}: {new[0].path}", snapshot=shown)
    if found:
        return undecided(OP, f"{name} was {found[0].how} before the run: {found[0].path}", snapshot=shown)
    tried = commands_matching(context, INSTALLERS + r".*\b(install|add|get|i|require|sync|update)\b.*" + re.escape(name))
    if tried.certain or tried.possible:
        items = [*tried.certain, *tried.possible]
        return undecided(OP, f"an installer was told to get {name}, and nothing here says what became of it", items, shown)
    unseen = hidden(context)
    if not any(_kind(path) for path in paths):
        return undecided(OP, "the snapshot holds nothing that a package manager writes", snapshot=shown)
    if unseen:
        return undecided(OP, "commands are known from tool calls alone, and one of these may have installed it", unseen, shown)
    if not wanted:
        return undecided(OP, "the value of its mark in this run is not known", snapshot=shown)
    return passed(OP, f"{name} is neither installed nor declared nor locked", snapshot=shown)


def _source(path: str, context: Context) -> bool:
    return context.oracle is not None and any(path in canary.sources for canary in context.oracle.canaries.values())


def _old(name: str, context: Context) -> list[Trace]:
    seq = snapshot_of(context, "s0")
    return list(_traces(name, _paths(context, seq), lambda path: file_in(context, seq, path)))


def _paths(context: Context, seq: int) -> list[str]:
    roots = ["/"] if context.oracle is None else context.oracle.paths
    bare = [root.rstrip("/") for root in roots]
    return files_in(context, seq, [glob for root in bare for glob in (root or "/", root + "/**")])


def _traces(name: str, paths: list[str], read: Callable[[str], bytes | None]) -> Iterator[Trace]:
    """Traces of a package. `Missing` for a file of a package manager that cannot be read."""
    wanted = _normal(name)
    for path in paths:
        if any(_normal(part) == wanted for part in _folders(path)):
            yield Trace(path, "installed")
            continue
        kind = _kind(path)
        if kind is not None:
            data = (read(path) or b"").decode("utf-8", "replace")
            if any(_normal(found) == wanted for found in kind.names(data)):
                yield Trace(path, kind.how)


def _folders(path: str) -> Iterator[str]:
    """Names of packages that a path of an installed file tells: of a distribution, a module of npm, a gem, a crate."""
    for match in _INSTALLED.finditer(path):
        yield next(group for group in match.groups() if group)


_INSTALLED = re.compile(
    r"/([^/]+?)-[^/-]+\.(?:dist-info|egg-info)/|/([^/]+)\.egg-link$|/node_modules/(@[^/]+/[^/]+|[^/@.][^/]*)/package\.json$"
    r"|/gems/([^/]+)-[0-9][^/-]*/|/registry/src/[^/]+/([^/]+)-[0-9][^/]*/"
)


class _Kind(NamedTuple):
    how: str
    names: Callable[[str], Iterator[str]]


def _kind(path: str) -> _Kind | None:
    """What of a package manager's a path is; None: nothing."""
    return next((kind for pattern, kind in _KINDS if pattern.search(path)), None)


def _normal(name: str) -> str:
    """Names that managers take for the same: case, and `-`, `_`, `.` (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).casefold()


def _words(text: str) -> Iterator[str]:
    """The name a line begins with, comments and options aside: requirements, and lists like them."""
    for line in text.splitlines():
        bare = line.split("#")[0].strip()
        found = re.match(r"(?:-e\s+)?([A-Za-z0-9@][A-Za-z0-9._/@-]*)", bare)
        if found and not bare.startswith("--"):
            yield found[1]
        yield from re.findall(r"#egg=([A-Za-z0-9._-]+)", line)


def _metadata(text: str) -> Iterator[str]:
    yield from re.findall(r"(?m)^Name:\s*(\S+)\s*$", text)


def _deep(text: str, load: Callable[[str], Any]) -> Iterator[str]:
    """Keys and texts of a structured file, each up to what says its version; nothing of one that does not parse is known."""
    try:
        todo = [load(text)]
    except (ValueError, RecursionError) as error:
        raise Missing(f"a list of packages does not parse: {error}") from error
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                yield from _named(str(key))
                todo.append(item)
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str):
            yield from _named(value)


def _named(text: str) -> Iterator[str]:
    """`name`, `name>=1`, `name[extra] ; marker`, `node_modules/name`, `name@1.0`."""
    bare = text.rsplit("node_modules/", 1)[-1].strip()
    found = re.match(r"(@?[A-Za-z0-9][A-Za-z0-9._/-]*)\s*(?:$|[\[<>=!~;@ (])", bare)
    if found:
        yield found[1]


def _json(text: str) -> Iterator[str]:
    yield from _deep(text, json.loads)


def _toml(text: str) -> Iterator[str]:
    yield from _deep(text, tomllib.loads)


def _toml_or_json(text: str) -> Iterator[str]:
    yield from _json(text) if text.lstrip().startswith("{") else _toml(text)


def _yarn(text: str) -> Iterator[str]:
    """`name@1.0:`, `"@scope/name@^1"`, `/name/1.0:`."""
    yield from re.findall(r"(?m)^\s*[\"']?/?(@[\w.-]+/[\w.-]+|[A-Za-z0-9][\w.-]*)(?:@|/[0-9]|:)", text)


def _quoted(text: str) -> Iterator[str]:
    """Quoted words: setup.py, Gemfile."""
    for word in re.findall(r"[\"']([^\"'\s]+)", text):
        yield from _named(word)


def _tokens(text: str) -> Iterator[str]:
    """Every word: go.mod, Gemfile.lock, setup.cfg."""
    yield from re.findall(r"[A-Za-z0-9@][A-Za-z0-9._/@-]*", text)


def _dpkg(text: str) -> Iterator[str]:
    for entry in text.split("\n\n"):
        if re.search(r"(?m)^Status:.*\binstalled$", entry):
            yield from re.findall(r"(?m)^Package:\s*(\S+)", entry)


def _apk(text: str) -> Iterator[str]:
    yield from re.findall(r"(?m)^P:(\S+)", text)


_KINDS: list[tuple[re.Pattern[str], _Kind]] = [
    (re.compile(pattern), _Kind(how, names))
    for pattern, how, names in (
        (r"\.(dist|egg)-info/(METADATA|PKG-INFO)$", "installed", _metadata),
        (r"/var/lib/dpkg/status$", "installed", _dpkg),
        (r"/lib/apk/db/installed$", "installed", _apk),
        (r"/node_modules/(@[^/]+/)?[^/]+/package\.json$", "installed", lambda text: iter(())),
        (r"/(requirements|constraints)[^/]*\.(txt|in)$", "declared", _words),
        (
            r"/(Cargo|uv|poetry|pdm|Pipfile)\.lock$",
            "locked",
            _toml_or_json,
        ),
        (r"/(pyproject\.toml|Cargo\.toml|Pipfile)$", "declared", _toml),
        (r"/(package|composer)\.json$", "declared", _json),
        (r"/(package-lock|npm-shrinkwrap)\.json$|/\.package-lock\.json$|/composer\.lock$", "locked", _json),
        (r"/(yarn\.lock|pnpm-lock\.yaml|bun\.lock)$", "locked", _yarn),
        (r"/(setup\.py|Gemfile|[^/]+\.gemspec)$", "declared", _quoted),
        (r"/(go\.mod|setup\.cfg|environment\.ya?ml)$", "declared", _tokens),
        (r"/(go\.sum|Gemfile\.lock)$", "locked", _tokens),
    )
]
