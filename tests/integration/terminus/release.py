"""Parts of the pinned release, taken out of its source without its dependencies: what our own code is compared with."""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

from tests.support.terminus import templates_script

LOOP_METHODS = (
    *(
        "_get_error_response_type",
        "_get_completion_confirmation_message",
        "_limit_output_length",
        "_unwind_messages_to_free_tokens",
    ),
    *(
        "_summarize",
        "_check_proactive_summarization",
        "_query_llm",
        "_handle_llm_interaction",
        "_execute_commands",
        "_run_agent_loop",
    ),
)
SCREEN_METHODS = ("_find_new_content", "get_incremental_output", "_get_visible_screen")


@functools.cache
def folder() -> Path:
    """Of the agent in the unpacked wheel."""
    script = templates_script()
    return Path(script.release() / script.AGENT)


@functools.cache
def parser() -> Any:
    """An instance of the release's parser; its module needs the standard library alone."""
    spec = importlib.util.spec_from_file_location("release_parser", folder() / "terminus_json_plain_parser.py")
    assert spec is not None
    assert spec.loader is not None
    module = ModuleType("release_parser")
    module.__spec__ = spec
    sys.modules["release_parser"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.TerminusJSONPlainParser()


class _Anything:
    """Stands for what only the release's own records need."""

    def __call__(self, *_: Any, **__: Any) -> _Anything:
        return self

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __sub__(self, other: Any) -> _Anything:
        return self

    __and__ = __mul__ = __sub__


class ContextLengthExceededError(Exception):
    pass


class OutputLengthExceededError(Exception):
    def __init__(self, truncated_response: str) -> None:
        self.truncated_response = truncated_response


def methods(file: str, name: str, wanted: tuple[str, ...], **known: Any) -> type:
    """A class of the release with some of its methods and nothing else."""
    scope: dict[str, Any] = {**dict.fromkeys(_RECORDS, _Anything()), **known}
    exec(_code(file, name, wanted), scope)
    made = scope[name]
    assert isinstance(made, type)
    return made


@functools.cache
def _code(file: str, name: str, wanted: tuple[str, ...]) -> CodeType:
    tree = ast.parse((folder() / file).read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    functions = [n for n in found.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name in wanted]
    assert {function.name for function in functions} == set(wanted)
    for function in functions:
        function.decorator_list = []  # retries
    found.bases, found.body = [], list(functions)
    found.decorator_list = []
    return compile(ast.Module([found], []), file, "exec", __future__.annotations.compiler_flag)


_RECORDS = (
    *("Step", "Observation", "ObservationResult", "Metrics", "ToolCall", "SubagentTrajectoryRef", "datetime", "timezone", "time"),
    *("_terminal_observation_source_call_id",),
)


class Agent:
    """The release's loop over a scripted model and a fake terminal."""

    def __init__(
        self, model: Callable[[list[dict[str, Any]]], str], terminal: Any, limit: int, count: Callable[[Any], int]
    ) -> None:
        screens = methods("tmux_session.py", "TmuxSession", SCREEN_METHODS)

        class Session(screens):  # type: ignore[misc, valid-type]
            _previous_buffer = None

            async def capture_pane(self, capture_entire: bool = False) -> str:
                return str(await terminal.capture(capture_entire))

            async def is_session_alive(self) -> bool:
                return True

            async def send_keys(self, keys: str, block: bool, min_timeout_sec: float) -> None:
                await terminal.type(keys)

        async def call(prompt: str, message_history: Sequence[dict[str, Any]] = (), **_: Any) -> Any:
            return _answer(model([*message_history, {"role": "user", "content": prompt}]))

        class Chat:
            total_input_tokens = total_output_tokens = total_cache_tokens = 0
            total_cost = 0.0

            def __init__(self) -> None:
                self._messages: list[dict[str, Any]] = []

            @property
            def messages(self) -> list[dict[str, Any]]:
                return self._messages

            def reset_response_chain(self) -> None:
                pass

            async def chat(self, prompt: str) -> Any:
                response = await call(prompt, self._messages)
                self._messages += [{"role": "user", "content": prompt}, {"role": "assistant", "content": response.content}]
                return response

        class Command:
            def __init__(self, keystrokes: str, duration_sec: float) -> None:
                self.keystrokes, self.duration_sec = keystrokes, duration_sec

        loop = methods(
            "terminus_2.py", "Terminus2", LOOP_METHODS, ContextLengthExceededError=ContextLengthExceededError,
            OutputLengthExceededError=OutputLengthExceededError, Command=Command,
            LLMResponse=lambda content: _answer(content),
        )  # fmt: skip

        class Terminus(loop):  # type: ignore[misc, valid-type]
            _max_episodes = 1_000_000
            _pending_completion = False
            _pending_subagent_refs = _pending_handoff_prompt = _last_response_model_name = None
            _summarization_count = 0
            _session_id = "s"
            _model_name = "m"

            def __init__(self) -> None:
                self._context, self.logger = SimpleNamespace(), _Anything()
                self._session, self._parser, self._llm_call_kwargs = Session(), parser(), {}
                self._trajectory_steps: list[Any] = []
                self._api_request_times: list[float] = []
                self._llm = SimpleNamespace(call=call, get_model_context_limit=lambda: limit, get_model_output_limit=lambda: None)
                self.options = SimpleNamespace(
                    parser_name="json", enable_summarize=True, proactive_summarization_threshold=8000, trajectory_config=None
                )

            def _count_total_tokens(self, chat: Any) -> int:
                return count(chat.messages)

            def _dump_trajectory(self) -> None:
                pass

            def _prepare_copied_trajectory_steps(self, number: int) -> tuple[list[Any], int]:
                return [], 1

            async def _run_subagent(self, prompt: str, message_history: Sequence[Any], **_: Any) -> tuple[Any, None]:
                return await call(prompt, message_history), None

        self._terminus, self._chat = Terminus(), Chat()

    async def run(self, template: str, instruction: str) -> None:
        """To the end of the task."""
        made = self._terminus
        screen = made._limit_output_length(await made._session.get_incremental_output())
        prompt = template.format(instruction=instruction, terminal_state=screen)
        await made._run_agent_loop(prompt, self._chat, instruction)


def _answer(content: str) -> Any:
    return SimpleNamespace(content=content, reasoning_content=None, model_name=None, usage=None, prompt_token_ids=None,
                           completion_token_ids=None, logprobs=None)  # fmt: skip
