"""Mutation testing of the operators of hard checks: which small errors in them would no test notice?

    python hack/mutation.py [--write docs/mutation.md] [--only NAME ...] [--sample N] [--seed N] [--jobs N]       (make mutation)

One error at a time: a comparison, a boolean, a constant, a result or a condition is turned round inside one function. The tests
of the operators are collected once; every mutant is a forked child in which that function's code is replaced, and which runs the
tests that call it until one fails. A mutant that no test fails on survives, and is named. Those that change nothing anybody could
notice are listed in hack/equivalent_mutants.yaml, each with the reason; they are not tried, and one that is none any more is an
error.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import inspect
import os
import platform
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TESTS = ["tests/unit/checks", "tests/unit/known/test_cases.py"]
MODULES = (
    "archives", "canary", "claims", "clauses", "coded", "conduct", "found", "git.objects", "git.repository", "hidden", "leave",
    "operators", "order", "packages", "patch_present", "permission", "places", "processes", "recorded", "recoverable", "sequence",
    "shown", "stated", "words",
)  # fmt: skip
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.yaml")
SEED = 7
SECONDS = 60  # of one mutant; longer is a loop, and noticed
FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
CALLS = {"passed": ("failed", "undecided"), "failed": ("passed", "undecided"), "undecided": ("passed", "failed"), "any": ("all",),
         "all": ("any",), "min": ("max",), "max": ("min",)}  # fmt: skip
WORDS = {"before": "after", "after": "before", "pass": "fail", "fail": "pass", "exec": "tool_text"}


class Mutant(NamedTuple):
    """One error: where it is, what it is, and the code of the function with it."""

    module: str
    function: str
    line: int
    text: str  # of the line, without space around it
    what: str
    code: Callable[[], CodeType]

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.what}"


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST | None]]]:
    """(what, how) for every error that a node can be given. `how` changes the node in place, or returns another one for it."""
    match node:
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                other = FLIPS[type(op)]
                yield f"{type(op).__name__} -> {other.__name__}", lambda n, at=at, other=other: _set(n.ops, at, other())  # type: ignore[misc]
        case ast.BoolOp(op=op):
            other_op = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"{type(op).__name__} -> {other_op.__name__}", lambda n: setattr(n, "op", other_op())
        case ast.UnaryOp(op=ast.Not()):
            yield "not removed", lambda n: n.operand  # type: ignore[attr-defined]
        case ast.Constant(value=bool() as value):
            yield f"{value} -> {not value}", lambda n: setattr(n, "value", not n.value)  # type: ignore[attr-defined]
        case ast.Constant(value=int() as value):
            yield f"{value} -> {value + 1}", lambda n: setattr(n, "value", n.value + 1)  # type: ignore[attr-defined]
        case ast.Constant(value=str() as value) if value in WORDS:
            yield f"{value!r} -> {WORDS[value]!r}", lambda n: setattr(n, "value", WORDS[n.value])  # type: ignore[attr-defined]
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            for called in CALLS[name]:
                yield f"{name}() -> {called}()", lambda n, called=called: setattr(n.func, "id", called)  # type: ignore[misc]
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.BoolOp):
            yield "condition turned round", lambda n: setattr(n, "test", ast.UnaryOp(op=ast.Not(), operand=n.test))  # type: ignore[attr-defined]
        case ast.BinOp(op=ast.Add() | ast.Sub() as op) if not isinstance(node.left, ast.JoinedStr | ast.List):
            turned = ast.Sub if isinstance(op, ast.Add) else ast.Add
            yield f"{type(op).__name__} -> {turned.__name__}", lambda n: setattr(n, "op", turned())


def _set(items: list[Any], at: int, value: Any) -> None:
    items[at] = value


def mutants(module: ModuleType, name: str) -> Iterator[Mutant]:
    """Every mutant of the functions and methods of a module."""
    source = inspect.getsource(module)
    tree, lines = ast.parse(source), source.splitlines()
    path = str(module.__file__)
    nodes = list(ast.walk(tree))
    owner = {id(child): qualified for qualified, function in _functions(tree) for child in _body(function)}
    for number, node in enumerate(nodes):
        qualified = owner.get(id(node))
        if qualified is None:
            continue
        for what, how in changes(node):
            line = getattr(node, "lineno", 0)
            code = partial(_mutated, tree, number, how, path, qualified)
            yield Mutant(name, qualified, line, lines[line - 1].strip(), what, code)


def tried(found: list[Mutant], known: list[dict[str, str]]) -> list[Mutant]:
    """Without those that are known to change nothing: by module, function, line of the source and error."""
    keys = {(one["module"], one["function"], one["line"], one["what"]) for one in known}
    gone = keys - {(one.module, one.function, one.text, one.what) for one in found}
    names = {one.module for one in found}
    if stale := sorted(key for key in gone if key[0] in names):
        raise SystemExit(f"{EQUIVALENT.name}: no such mutant: {stale}")
    return [one for one in found if (one.module, one.function, one.text, one.what) not in keys]


def _mutated(tree: ast.Module, number: int, how: Callable[[Any], Any], path: str, qualified: str) -> CodeType:
    """The function's code with the error in node `number` of its module."""
    changed = copy.deepcopy(tree)
    target = list(ast.walk(changed))[number]
    other = how(target)
    if isinstance(other, ast.AST):
        changed = _Replace(target, other).visit(changed)
    return _code(compile(ast.fix_missing_locations(changed), path, "exec"), qualified)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else self.generic_visit(node)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{child.name}", child) for child in node.body if isinstance(child, ast.FunctionDef))


def _body(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of its body but for texts that only tell: docstrings, and formatted messages."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise):
            continue
        yield node
        todo += ast.iter_child_nodes(node)


def _code(module: CodeType, qualified: str) -> CodeType:
    for const in module.co_consts:
        if isinstance(const, CodeType):
            if const.co_qualname == qualified:
                return const
            if qualified.startswith(const.co_qualname + "."):
                return _code(const, qualified)
    raise LookupError(qualified)


def function_of(module: ModuleType, qualified: str) -> FunctionType:
    """The function object whose code is replaced."""
    found: Any = module
    for part in qualified.split("."):
        found = inspect.getattr_static(found, part)
    found = getattr(found, "fget", None) or getattr(found, "__func__", None) or inspect.unwrap(found)
    assert isinstance(found, FunctionType), qualified
    return found


class Mutation:
    """A pytest plugin that runs the collected tests once, and then once per mutant those that call what was changed."""

    def __init__(self, only: list[str], sample: int | None, seed: int, jobs: int) -> None:
        self._only, self._sample, self.seed, self._jobs = only, sample, seed, jobs
        self.possible = 0
        self.equivalent: list[dict[str, str]] = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))
        self.survivors: list[Mutant] = []
        self.total: dict[str, int] = defaultdict(int)
        self.killed: dict[str, int] = defaultdict(int)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        modules = {name: importlib.import_module(f"realcli.checks.{name}") for name in self._only or MODULES}
        found = [one for name, module in modules.items() for one in mutants(module, name)]  # while the sources are as loaded
        todo = tried(found, self.equivalent)
        calls, slow = self._baseline(session, {str(module.__file__): name for name, module in modules.items()})
        if session.testsfailed:
            raise SystemExit("the tests fail without any mutant")
        self.possible = len(todo)
        if self._sample is not None and self._sample < len(todo):
            todo = random.Random(self.seed).sample(todo, self._sample)
        print(f"{len(todo)} of {self.possible} mutants, {len(session.items)} tests", flush=True)
        running: dict[int, Mutant] = {}
        for mutant in [*todo, None]:
            while running and (len(running) >= self._jobs or mutant is None):
                pid, status = os.wait()
                self._ended(running.pop(pid), status)
            if mutant is not None:
                items = sorted(calls.get((mutant.module, mutant.function), ()), key=lambda at: slow[at])
                pid = os.fork()
                if pid == 0:
                    self._child(session, [session.items[at] for at in items], modules[mutant.module], mutant)
                running[pid] = mutant
        return True

    def _baseline(self, session: pytest.Session, files: dict[str, str]) -> tuple[dict[tuple[str, str], set[int]], list[float]]:
        """(function -> tests that call it, seconds of each test)."""
        calls: dict[tuple[str, str], set[int]] = defaultdict(set)
        slow: list[float] = []
        for at, item in enumerate(session.items):

            def note(frame: Any, event: str, argument: Any, at: int = at) -> None:
                code = frame.f_code
                if event == "call" and code.co_filename in files:
                    calls[files[code.co_filename], code.co_qualname.split(".<locals>")[0]].add(at)

            began = time.perf_counter()
            sys.setprofile(note)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.setprofile(None)
            slow.append(time.perf_counter() - began)
        return calls, slow

    def _child(self, session: pytest.Session, items: list[pytest.Item], module: ModuleType, mutant: Mutant) -> None:
        signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        function_of(module, mutant.function).__code__ = mutant.code()
        for item in items:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if session.testsfailed:
                os._exit(1)
        os._exit(0)

    def _ended(self, mutant: Mutant, status: int) -> None:
        self.total[mutant.module] += 1
        if status == 0:
            self.survivors.append(mutant)
            print(f"survives: {mutant.name}", flush=True)
        else:
            self.killed[mutant.module] += 1


def page(run: Mutation, seconds: float) -> str:
    """docs/mutation.md."""
    total, killed = sum(run.total.values()), sum(run.killed.values())
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    lines = [
        "# Mutation testing of the hard checks", "",
        "Written by `make mutation`; do not edit. One small error at a time is put into a function of `realcli/checks`:",
        "a comparison, a boolean, a constant, a result or a condition is turned round. It is *killed* when a test fails.",
        f"{len(run.equivalent)} that change nothing anybody could notice are not counted: [why](../hack/{EQUIVALENT.name}).", "",
        f"{datetime.now(UTC):%Y-%m-%d}: {machine}, {seconds / 60:.0f} minutes.",
        f"{total} of {run.possible} mutants were tried{'' if total == run.possible else f', drawn with seed {run.seed}'}.", "",
        f"**{killed} of {total} killed ({100 * killed / max(total, 1):.1f} %).**", "",
        "| module | killed | of | % |", "|---|---:|---:|---:|",
    ]  # fmt: skip
    for name in sorted(run.total):
        part = 100 * run.killed[name] / run.total[name]
        lines.append(f"| `{name}` | {run.killed[name]} | {run.total[name]} | {part:.0f} |")
    lines += ["", "## Survivors", ""]
    lines += [
        f"* `{mutant.module}` line {mutant.line}, `{mutant.function}`: {mutant.what}"
        for mutant in sorted(run.survivors, key=lambda one: (one.module, one.line))
    ] or ["None."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Exit status 1 where fewer than 90 % are killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, help="write the page there")
    parser.add_argument("--only", choices=MODULES, nargs="+", default=[], help="some modules alone")
    parser.add_argument("--sample", type=int, help="so many of them, drawn with a seed; default: all")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    os.chdir(ROOT)
    began = time.monotonic()
    run = Mutation(asked.only, asked.sample, asked.seed, asked.jobs)
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", *TESTS], plugins=[run])
    text = page(run, time.monotonic() - began)
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    total, killed = sum(run.total.values()), sum(run.killed.values())
    print(f"{killed} of {total} killed")
    return 0 if total and killed >= 0.9 * total else 1


if __name__ == "__main__":
    sys.exit(main())
