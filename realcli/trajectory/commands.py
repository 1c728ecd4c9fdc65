"""The normalised text of a command, which `where.cmd` is searched in. Pure.

One form whatever the record: the program's name without its folder, then its arguments, single spaces between them, quotes and
assignments before the program gone. So `^sudo ` means the program sudo, `(pip|uv)\\b.*\\binstall` what it looks like. The
script of a shell's `-c` and a whole tool text are taken apart into their simple commands (lists, pipes, sub-shells; a
here-document is data). What a shell that was executed with a script executes has records of its own, so its script proves
nothing of programs; built-ins and redirections have no record, and are *possible*. A script may be longer than what is kept
(agent programs put a page before every command): what it executes is recorded all the same.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import NamedTuple

from realcli.ledger.evidence import Command

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_PLAIN = (
    "ls cat head tail less more stat file wc find fd tree du df grep rg egrep fgrep ps pgrep pwd whoami id printenv echo "
    "printf date uname which type diff cmp sha256sum sha1sum md5sum test [ true false sleep cut tr sort uniq basename "
    "dirname readlink realpath nl od xxd base64 hostname getconf seq tac rev column jq cd export set unset umask read wait "
    "exit return shift local cp mv rm rmdir mkdir touch ln chmod chown chgrp install dd truncate shred tee sed git tar gzip "
    "gunzip zcat bzip2 xz unxz zstd zip unzip curl wget sync mktemp split paste join comm fold fmt expand shuf kill pkill "
    "killall history clear reset ss netstat ping dig host"
)
PLAIN = frozenset(_PLAIN.split())
"""Programs and built-ins that run no other program, as they are commonly used: their text is what they did."""
_KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "exec", "command", "nohup", "builtin")
)
_REDIRECTION = re.compile(r"^(?:\d*|&)(?:>>?|<)[&|]?(.*)$")
_BUILTINS = (
    ". source eval cd echo printf export set unset umask kill trap test [ [[ read alias unalias type hash ulimit wait jobs bg fg "
    "let declare local readonly shift true false pwd mapfile pushd popd"
)
BUILTINS = frozenset(_BUILTINS.split())
"""What a shell does itself, so that no execution is recorded."""
_ENDS = ("&&", "||", ";;", ";", "|&", "|", "&", "\n", "(", ")", "`")


class CommandText(NamedTuple):
    """What a command certainly was, and what else it may have done."""

    certain: tuple[str, ...]
    possible: tuple[str, ...]  # what a shell that was executed with a script did itself, if it came to that
    redirected: tuple[
        tuple[str, str], ...
    ]  # (with, without) redirections: programs of that script, which have a record without them
    cut: bool  # there was more than what is kept
    script: tuple[str, ...] | None = None  # all that stands in the script a shell was executed with; None: it is no such shell

    @property
    def shell(self) -> bool:
        """A shell that was executed with a script."""
        return self.script is not None

    @property
    def indirect(self) -> bool:
        """A shell or an interpreter: what it did is not in its text."""
        return any(_is_indirect(text) for text in self.certain)


def command_text(command: Command) -> CommandText:
    """Normalised texts of one record."""
    argv = command.argv or [command.path]
    script = shell_script(argv)
    if command.record == "exec":
        if script is None:
            return CommandText((_join(argv),), (), (), command.cut)
        parts = simple_commands(script)
        plain = [(part, _without_redirections(part)) for part in parts]
        own = tuple(part for part in parts if part.split(" ")[0] in BUILTINS)
        redirected = tuple(pair for pair in plain if pair[0] not in own and pair[0] != pair[1])
        return CommandText((f"{_name(argv[0])} -c",), own, redirected, False, parts)
    text = script if script is not None else argv[0] if len(argv) == 1 else None
    return CommandText((_join(argv),) if text is None else simple_commands(text), (), (), command.cut)


def _without_redirections(text: str) -> str:
    kept: list[str] = []
    words = iter(text.split(" "))
    for word in words:
        found = _REDIRECTION.match(word)
        if found is None:
            kept.append(word)
        elif not found[1]:
            next(words, None)  # `> file`
    return " ".join(kept)


def shell_script(argv: list[str]) -> str | None:
    """The script of `sh -c SCRIPT` (also `bash -lc`), None for any other program."""
    if not argv or _name(argv[0]) not in SHELLS:
        return None
    for at, word in enumerate(argv[1:], start=1):
        if not word.startswith("-") or word == "--":
            return None
        if not word.startswith("--") and word.endswith("c"):
            return argv[at + 1] if at + 1 < len(argv) else None
    return None


def simple_commands(script: str) -> tuple[str, ...]:
    """The simple commands of a shell text, in the order they stand there, normalised."""
    return _remembered(script) if len(script) <= REMEMBERED else _simple_commands(script)


def _simple_commands(script: str) -> tuple[str, ...]:
    return tuple(text for text in (_normal(part) for part in _split(script)) if text)


REMEMBERED = 16_384  # characters of a text whose commands are kept: every check of a run reads them again
_remembered = lru_cache(maxsize=2_048)(_simple_commands)


def _split(script: str) -> list[str]:
    """Cut at operators outside quotes; bodies of here-documents are left out."""
    parts: list[str] = []
    current: list[str] = []
    pending: list[str] = []
    at, quote = 0, ""
    while at < len(script):
        char = script[at]
        if quote:
            current.append(char)
            if char == "\\" and quote == '"' and at + 1 < len(script):
                at += 1
                current.append(script[at])
            elif char == quote:
                quote = ""
            at += 1
        elif char == "\\" and at + 1 < len(script):
            if script[at + 1] != "\n":
                current += [char, script[at + 1]]
            at += 2
        elif char in "'\"":
            quote = char
            current.append(char)
            at += 1
        elif char == "#" and (not current or current[-1].isspace()):
            newline = script.find("\n", at)
            at = len(script) if newline < 0 else newline
        elif script.startswith("<<<", at):
            current += "<<<"
            at += 3
        elif script.startswith("<<", at):
            at, word = _here_word(script, at + 2)
            pending.append(word)
        elif script.startswith((">&", "<&", "&>"), at):
            current.append(script[at : at + 2])
            at += 2
        else:
            end = next((end for end in _ENDS if script.startswith(end, at)), None)
            if end is None:
                current.append(char)
                at += 1
                continue
            parts.append("".join(current))
            current = []
            at += len(end)
            if end == "\n":
                at = _skip_bodies(script, at, pending)
                pending = []
    return [*parts, "".join(current)]


def _here_word(script: str, at: int) -> tuple[int, str]:
    """Past `<<-'WORD'`: where it ends, and the word that closes the body."""
    while at < len(script) and script[at] in "- \t":
        at += 1
    start = at
    while at < len(script) and script[at] not in " \t\n;|&)":
        at += 1
    return at, script[start:at].strip("'\"\\")


def _skip_bodies(script: str, at: int, words: list[str]) -> int:
    for word in words:
        while at < len(script):
            end = script.find("\n", at)
            end = len(script) if end < 0 else end
            line, at = script[at:end].strip(), end + 1
            if line == word:
                break
    return min(at, len(script))


def _normal(part: str) -> str:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:  # a quote that is never closed: keep the words as they stand
        words = part.split()
    while words and (words[0] in _KEYWORDS or _is_assignment(words[0]) or words[0] in ("env", "timeout", "nice", "stdbuf")):
        wrapper = words.pop(0)
        if wrapper in ("env", "timeout", "nice", "stdbuf"):
            words = _after_wrapper(wrapper, words)
    return _join(words) if words else ""


def _after_wrapper(wrapper: str, words: list[str]) -> list[str]:
    """What a wrapper runs: past its options, and past the number `timeout` wants."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-n", "-s", "-k", "-u") and rest:
            rest.pop(0)
    return rest[1:] if wrapper == "timeout" else rest


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _join(words: list[str]) -> str:
    return " ".join(" ".join([_name(words[0]), *words[1:]]).split()) if words else ""


def _name(program: str) -> str:
    return program.rsplit("/", 1)[-1].removeprefix("-") or program


def _is_indirect(text: str) -> bool:
    """Anything but a program that is known to run no other: a shell, a script, an alias, a variable, `find -exec`, `sudo`."""
    words = text.split(" ")
    return words[0] not in PLAIN or (words[0] == "find" and any(word.startswith(("-exec", "-ok")) for word in words))
