#!/usr/bin/env python3
"""Takes the words of Terminus-2 out of the pinned harbor wheel: its prompt templates, and the texts that its code holds.

    terminus_templates.py DEST      fills DEST with templates, wording.json and the licence; prints their digest

A reworded prompt would be another agent, so the texts come from the release itself and are never committed. Templates are
files of the wheel. The other texts stand in its source; they are found by file, function and number (the n-th text in that
function), which is certain because the wheel is pinned by hash. An f-string becomes a format: `{0}`, `{1}`, ...
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli")
REQUIREMENTS = HERE / "harbor-requirements.txt"
AGENT = Path("harbor/agents/terminus_2")
TARGET = ("--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_28")

PARSER, LOOP, TERMINAL = "terminus_json_plain_parser.py", "terminus_2.py", "tmux_session.py"
TEXTS: dict[str, tuple[str, str, int]] = {
    "auto_corrected": (PARSER, "parse_response", 1),
    "fixed_braces": (PARSER, "_get_auto_fixes", 0),
    "fixed_mixed": (PARSER, "_get_auto_fixes", 1),
    "no_json": (PARSER, "_try_parse_response", 0),
    "invalid_json": (PARSER, "_try_parse_response", 6),
    "invalid_json_content": (PARSER, "_try_parse_response", 7),
    "invalid_json_preview": (PARSER, "_try_parse_response", 8),
    "no_object": (PARSER, "_extract_json_content", 5),
    "text_before": (PARSER, "_extract_json_content", 6),
    "text_after": (PARSER, "_extract_json_content", 7),
    "not_an_object": (PARSER, "_validate_json_structure", 0),
    "missing_fields": (PARSER, "_validate_json_structure", 1),
    "analysis_type": (PARSER, "_validate_json_structure", 4),
    "plan_type": (PARSER, "_validate_json_structure", 7),
    "commands_type": (PARSER, "_validate_json_structure", 9),
    "complete_type": (PARSER, "_validate_json_structure", 11),
    "command_type": (PARSER, "_parse_commands", 0),
    "keystrokes_missing": (PARSER, "_parse_commands", 2),
    "keystrokes_type": (PARSER, "_parse_commands", 4),
    "duration_invalid": (PARSER, "_parse_commands", 7),
    "duration_missing": (PARSER, "_parse_commands", 8),
    "unknown_fields": (PARSER, "_parse_commands", 11),
    "newline_missing": (PARSER, "_parse_commands", 13),
    "order_joint": (PARSER, "_check_field_order", 4),
    "wrong_order": (PARSER, "_check_field_order", 6),
    "confirm": (LOOP, "_get_completion_confirmation_message", 1),
    "response_type": (LOOP, "_get_error_response_type", 1),
    "output_limited": (LOOP, "_limit_output_length", 8),
    "feedback_error": (LOOP, "_handle_llm_interaction", 1),
    "feedback_error_warnings": (LOOP, "_handle_llm_interaction", 2),
    "feedback_warnings": (LOOP, "_handle_llm_interaction", 3),
    "error_mark": (LOOP, "_run_agent_loop", 17),
    "parsing_errors": (LOOP, "_run_agent_loop", 18),
    "had_warnings": (LOOP, "_run_agent_loop", 21),
    "summary": (LOOP, "_summarize", 1),
    "questions": (LOOP, "_summarize", 7),
    "answers": (LOOP, "_summarize", 17),
    "handoff_answers": (LOOP, "_summarize", 34),
    "handoff_continue": (LOOP, "_summarize", 36),
    "short_summary": (LOOP, "_query_llm", 8),
    "short_handoff": (LOOP, "_query_llm", 9),
    "last_handoff": (LOOP, "_query_llm", 14),
    "fallback_reply": (LOOP, "_query_llm", 16),
    "truncated_warnings": (LOOP, "_query_llm", 23),
    "output_limit": (LOOP, "_query_llm", 26),
    "truncated": (LOOP, "_query_llm", 27),
    "mcp_heading": (LOOP, "run", 1),
    "mcp_stdio": (LOOP, "run", 4),
    "screen": (TERMINAL, "get_incremental_output", 0),
    "new_output": (TERMINAL, "get_incremental_output", 1),
}


def release() -> Path:
    """The unpacked wheel, downloaded once and checked against its hash."""
    folder = CACHE / "harbor" / hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    if not folder.exists():
        partial = folder.with_name(f"partial-{folder.name}-{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        done = subprocess.run(
            ["uv", "pip", "install", "-q", "--no-deps", "--require-hashes", "--only-binary", ":all:", *TARGET,
             "--target", partial, "-r", REQUIREMENTS],
            capture_output=True, text=True, cwd=HERE,
        )  # fmt: skip
        if done.returncode != 0:
            sys.exit(
                f"terminus_templates.py: the harbor wheel could not be had; check the network or REALCLI_CACHE:\n{done.stderr}"
            )
        try:
            partial.rename(folder)
        except OSError:  # another run was faster
            shutil.rmtree(partial)
    return folder


class _Texts(ast.NodeVisitor):
    """The texts of one function in the order of the source; docstrings and annotations are none."""

    def __init__(self) -> None:
        self.found: list[ast.Constant | ast.JoinedStr] = []

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.found.append(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.append(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)


def texts(source: str, function: str) -> list[str]:
    """All texts of a function, as formats."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            visitor = _Texts()
            for statement in node.body:
                visitor.visit(statement)
            return [_format(text) for text in sorted(visitor.found, key=lambda text: (text.lineno, text.col_offset))]
    raise LookupError(function)


def _format(node: ast.Constant | ast.JoinedStr) -> str:
    made, fields = "", 0
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if isinstance(part, ast.Constant):
            made += str(part.value).replace("{", "{{").replace("}", "}}")
        else:
            assert isinstance(part, ast.FormattedValue)
            made += f"{{{fields}{'' if part.conversion == -1 else '!' + chr(part.conversion)}}}"
            fields += 1
    return made


def unpack(dest: Path) -> str:
    """Fill `dest`; returns the digest of what is in it."""
    wheel = release()
    sources = {name: (wheel / AGENT / name).read_text() for name in (PARSER, LOOP, TERMINAL)}
    functions = {(file, function): texts(sources[file], function) for file, function, _ in TEXTS.values()}
    words = {name: functions[file, function][number] for name, (file, function, number) in TEXTS.items()}
    dest.mkdir(parents=True, exist_ok=True)
    for template in sorted((wheel / AGENT / "templates").glob("*.txt")):
        shutil.copyfile(template, dest / template.name)
    shutil.copyfile(next(wheel.glob("harbor-*.dist-info/licenses/LICENSE")), dest / "LICENSE")
    (dest / "wording.json").write_text(json.dumps(words, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    return digest(dest)


def digest(folder: Path) -> str:
    """`sha256:<hex>` over names and contents."""
    lines = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in sorted(folder.iterdir())]
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(unpack(Path(sys.argv[1])))
