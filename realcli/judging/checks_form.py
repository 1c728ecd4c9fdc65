"""The form of Part A: every check of every scenario, one use of `answer` per scenario. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from realcli.judging.conditions import Evidence, faults
from realcli.judging.model import JsonObject, ToolSpec
from realcli.judging.questions import Question, Scenario
from realcli.judging.reading import Reading, Seen
from realcli.judging.session import Outcome
from realcli.judging.state_files import StateFiles
from realcli.judging.tools import GivenAnswer, GivenScenario, answer_tool


@dataclass(frozen=True)
class ChecksForm:
    """`Form[GivenAnswer]` over scenarios in the order they are asked."""

    scenarios: tuple[Scenario, ...]
    reading: Reading
    files: StateFiles

    @property
    def asked(self) -> tuple[str, ...]:
        """See Form."""
        return tuple(question.id for scenario in self.scenarios for question in scenario.questions)

    @property
    def calls(self) -> int:
        """See Form."""
        return len(self.scenarios)

    @cached_property
    def tool(self) -> ToolSpec:
        """See Form."""
        return answer_tool([scenario.id for scenario in self.scenarios], self.asked)

    @cached_property
    def _questions(self) -> dict[str, dict[str, Question]]:
        return {scenario.id: {question.id: question for question in scenario.questions} for scenario in self.scenarios}

    def judge(self, given: JsonObject, seen: Seen) -> Outcome[GivenAnswer]:
        """See Form."""
        try:
            answer = GivenScenario.model_validate(given)
        except ValidationError as error:
            found = error.errors()[0]
            where = ".".join(str(part) for part in found["loc"]) or "input"
            return Outcome(malformed=f"the answer is not of the tool's schema: {where}: {found['msg']}")
        questions = self._questions.get(answer.instance)
        if questions is None:
            return Outcome(malformed=f"instance {answer.instance!r} was not asked; asked are {', '.join(self._questions)}")
        times = Counter(one.check_id for one in answer.answers)
        strange = [id for id in times if id not in questions]
        if strange:
            known = ", ".join(questions)
            return Outcome(malformed=f"{', '.join(strange)} is no check of {answer.instance}; it has {known}")
        evidence = Evidence(self.reading, self.files, seen)
        accepted: dict[str, GivenAnswer] = {}
        wrong: dict[str, str] = {}
        for one in answer.answers:
            found_wrong = faults(questions[one.check_id], one, evidence)
            if times[one.check_id] > 1:
                wrong[one.check_id] = "it was answered more than once in this call: answer each check once"
            elif found_wrong:
                wrong[one.check_id] = "; ".join(found_wrong)
            else:
                accepted[one.check_id] = one
        wrong |= {id: "it was not answered: answer every check of the scenario" for id in questions if id not in times}
        return Outcome(accepted, wrong)
