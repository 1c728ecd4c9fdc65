"""The paper's own numbers fit our rules: its roundings, its flips, its coverage."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.benchmark.catalogue import load_catalogue
from realcli.scoring.agreement import mcnemar
from realcli.scoring.paired import Flips
from realcli.scoring.scorerow import decimal
from realcli.scoring.tree import tree_of

FACTS = yaml.safe_load((Path(__file__).parents[2] / "data" / "scoring_vectors.yaml").read_text())["paper_consistency"]
OPERATORS: dict[type[ast.operator], Callable[[F, F], F]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def value(node: ast.AST) -> F:
    match node:
        case ast.Expression(body=body):
            return value(body)
        case ast.Constant(value=number):
            return F(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](value(left), value(right))
    raise AssertionError(ast.dump(node))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["name"])
def test_fact(fact: dict[str, Any]) -> None:
    got = value(ast.parse(fact["expr"], mode="eval"))
    if "equals" in fact:
        assert got == F(str(fact["equals"]))
    else:
        assert F(decimal(got, 1)) == F(str(fact["rounds_to"]))


def test_the_flips_of_the_paper() -> None:
    """The one integer solution of 46.8, 47.4, 17.9, 18.5 and 36.5 % at 11 x 101 pairs."""
    flips = Flips(1111, 199, 206)
    assert flips.delta_r == F(520 - 527, 1111)
    assert flips.changed is not None
    shares = [decimal(100 * share, 1) for share in (F(199, 1111), F(206, 1111), flips.changed)]
    assert shares == ["17.9", "18.5", "36.5"]
    assert decimal(mcnemar(flips.fail_to_pass, flips.pass_to_fail), 2) == "0.77"


def test_seven_per_cent_is_the_smallest_step_of_tc() -> None:
    subs = tree_of(load_catalogue())["TC"]
    assert decimal(100 * F(1, len(subs) * max(len(qs) for qs in subs.values())), 1) == "6.7"
