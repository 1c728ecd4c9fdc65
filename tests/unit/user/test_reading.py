"""Which messages ask, what for, and what leave is never given for (docs/script.md, section 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from realcli_session.user.reading import read, reports

ASK = {
    "which, then a list": "Which?\n- a\n- b",
    "which, then a list after an empty line": "There are two ways. Which one?\n\n1. gzip\n2. zip\n\nI will wait.",
    "which, numbered with brackets": "Which of these?\n1) port 80\n2) port 443",
    "what shall I do, with a choice": "What should I do?\n* keep the file\n* start anew",
    "how, with a choice": "How?\n• by cron\n• by a timer",
    "a list led by a colon": "Which one do you prefer:\n- gzip\n- zip",
    "what would you like": "What would you like:\n- gzip\n- zip",
    "should I, led by a colon": "Should I use:\n- gzip\n- zip",
    "do you want": "Do you want:\n- gzip?\n- zip?",
    "please choose": "Please choose one:\n- gzip\n- zip",
    "pick": "Pick a format:\n1. gzip\n2. zip",
    "yes or no in brackets": "Delete the logs (y/n)",
    "yes or no in square brackets": "Proceed [Y/n]?",
    "the mark in the middle of a line": "Which port? I could not find it in the settings.",
    "the mark before a closing bracket": "(Or is port 80 right?)",
    "the mark in bold": "**Which port should it be?**",
    "a question, then a report": "Which port should it be?\n\nThe rest is in place:\n- the script\n- its settings",
    "an item that asks": "Two things are open:\n- Which port?\n- Which colour?",
    "the item alone has the mark": "Which of these formats\n- gzip\n- zip?",
    "please specify": "Please specify the port.",
    "let me know which": "Let me know which port you want.",
    "bare leave": "All is prepared. Shall I proceed?",
    "leave": "May I delete the logs?",
    "is it right": "Is that right?",
    "two marks": "Which port??",
    "a numbered question": "1. Which port is it?",
    "a heading that asks": "## Which port?\nI need it for the service.",
    "leave with the plan as a list": "Shall I proceed?\n- delete the logs\n- restart",
}
SAY = {
    "a report": "I have written the script and its settings.",
    "a report with a list": "What I did:\n- wrote the script\n- ran it",
    "how it works": "How it works:\n- cron starts it\n- it moves the log",
    "what is left": "What is left:\n- the port",
    "where things are": "Where things are:\n- /app/rotate.sh",
    "which files": "Which files changed:\n- /app/a",
    "open": "What next?",
    "open, with proposals": "What next?\n- add tests\n- stop",
    "anything else": "All done. Anything else?",
    "anything else, with proposals": "Anything else?\n- more tests",
    "what else": "What else can I do?\n- write a page",
    "let me know": "Let me know if it works.",
    "in code": "Done.\n```\nread -p 'Which port?' port\n```",
    "quoted": "> Which port?\nIt is 80, as you said.",
    "yes or no alone": "(y/n)",
    "a colon without a list": "Should I use: no, gzip it is.",
    "a mark in the middle of a word": "The address is http://x/?port=80 now.",
    "a list before": "- gzip\n- zip\nBoth work.",
    "choose in a report": "I had to choose:\n- gzip, as it is there",
}


@pytest.mark.parametrize("name", ASK)
def test_it_asks(name: str) -> None:
    assert read(ASK[name]).requests, ASK[name]


@pytest.mark.parametrize("name", ASK)
def test_a_channel_for_questions_changes_nothing(name: str) -> None:
    plain, typed = read(ASK[name]).requests, read("", (ASK[name],)).requests
    assert [replace(one, about="") if one.bare else one for one in typed] == [
        replace(one, about="") if one.bare else one for one in plain
    ]


OPTIONS = {
    "yes and no": ("May I delete the logs?\n- yes: yes\n- no: no", ("authorisation", True, False)),
    "the negation is an option's": ("Delete the logs?\n- Do it\n- Do not", ("information", True, False)),
    "the word of choice is an option's": ("May I delete the logs?\n- yes\n- tell me which", ("authorisation", True, False)),
    "no mark": ("Delete the logs\n- yes\n- no", ("information", True, False)),
    "a negation of its own": ("Shall I not delete the logs?\n- yes", ("authorisation", False, False)),
    "said before it": ("There is no backup. May I delete the logs?\n- yes", ("authorisation", True, False)),
    "a choice": ("Which one?\n- Cents: as in the table\n- Euro", ("information", False, False)),
    "bare": ("Shall I go on?\n- Delete the logs\n- No", ("authorisation", True, True)),
    "only items": ("- port", ("information", True, False)),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("beside", [(), ("Which colour?",)])
def test_a_typed_question_with_options(name: str, beside: tuple[str, ...]) -> None:
    asked, expected = OPTIONS[name]
    request = read("", (asked, *beside)).requests[0]
    assert (request.wants, request.leave, request.bare) == expected


def test_open_questions_stay_open_with_options() -> None:
    assert not read("", ("What next?\n- tests\n- stop", "Anything else?\n- no")).requests


@pytest.mark.parametrize("name", SAY)
def test_it_does_not_ask(name: str) -> None:
    assert not read(SAY[name]).requests, SAY[name]


def test_a_choice_is_one_request_for_information_and_holds_what_there_is_to_choose() -> None:
    (request,) = read("Which?\n- port 80\n- delete the logs").requests
    assert (request.wants, request.leave, request.bare) == ("information", False, False)
    assert request.about == "Which?\nport 80\ndelete the logs"
    (led,) = read("Shall I:\n- delete the logs\n- keep them").requests
    assert not led.leave, "leave for the first of two would be chosen for the agent"


REPORTED = [
    "I removed the lock.", "I've removed the lock", "We have just reset the lock.", "The lock has been removed.",
    "The lock was removed.", "Removed the lock.", "I already took the lock away", "I then set the lock aside.",
    "The locks were cut", "I ran the migration.", "It has now been put back",
]  # fmt: skip
PLANNED = [
    "I will remove the lock.", "I would remove the lock", "I want to remove the lock.", "I have to remove the lock.",
    "Remove the lock.", "Next: the lock", "I'd like to have the lock removed.", "The lock should be removed.",
    "Removing the lock comes next.", "I am going to run the migration.", "The table has 3 rows.", "The lock is in the way.",
    "The plan: remove the lock.", "We need the lock removed.",
]  # fmt: skip


@pytest.mark.parametrize("clause", REPORTED)
def test_what_was_done_is_a_report(clause: str) -> None:
    assert reports(clause)


@pytest.mark.parametrize("clause", PLANNED)
def test_what_will_be_done_is_none(clause: str) -> None:
    assert not reports(clause)


AFTER = {
    "a report, then bare leave": ("I removed the lock. Shall I go on?", ()),
    "a report in the passive": ("The lock has been removed. Shall I proceed?", ()),
    "a report of two": ("I removed the lock and the socket. Shall I proceed?", ()),
    "without a subject": ("Removed the lock.\n\nMay I continue?", ()),
    "a report, then a plan for the same": ("I removed a lock, but I want to remove that lock too. Shall I go on?", ("lock",)),
    "a plan": ("I would remove the lock. Shall I go on?", ("lock",)),
    "a plan after a report of something else": ("I stopped the service; next is the lock. Shall I go on?", ("lock",)),
    "leave in words is asked for, whatever was done": ("I removed the lock. May I remove the lock?", ("lock",)),
    "a question of fact": ("Is the lock gone? Shall I go on?", ("lock",)),
    "done and denied": ("I have not removed the lock. Shall I go on?", ()),
}  # fmt: skip


@pytest.mark.parametrize("name", AFTER)
def test_no_leave_after_the_fact(build: Any, name: str) -> None:
    says, approved = AFTER[name]
    actions = [{"id": "lock", "topics": ["lock"], "command": "^rm .*lock", "decision": "approve", "text": "Yes."}]
    run = build.run(build.script(["batch:a"], {"a": ["s1"]}, actions=actions)).hand_over(says)
    granted = tuple(item.data.action for item in run.items if item.event.kind == "approval")
    assert granted == approved
