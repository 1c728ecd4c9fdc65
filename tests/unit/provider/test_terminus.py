"""What the scripted provider reads off a Terminus-2 prompt."""

from __future__ import annotations

from realcli_provider.terminus import opening, reply

SCREEN = """New Terminal Output:

root@three-00010-a1:/app# cat /app/site.ini && echo done
# one comment that is no prompt
[site]
instance =
done
root@three-00010-a1:/app# cat > /app/x <<'EOF'
> first
> second
> EOF
> quoted text that a command printed stays only where no prompt is before it
bash-5.2$ echo hi
hi
> 1 file changed
root@three-00010-a1:/app#


"""


def test_a_result_is_what_commands_printed() -> None:
    said = "# one comment that is no prompt\n[site]\ninstance =\ndone\nhi\n> 1 file changed"
    assert reply(SCREEN).result == said


def test_the_users_words_stand_apart_from_the_screen() -> None:
    found = reply(f"<user_message>\nPlease set it.\n</user_message>\n\n{SCREEN}")
    assert found.said == "Please set it."
    assert found.result.startswith("# one comment")


def test_the_opening_is_the_task_alone() -> None:
    prompt = '{"keystrokes": ""}\nTask Description:\nDo it.\n\nCurrent terminal state:\nroot@a:/app# \n'
    assert opening(prompt).said == "Do it."
    assert opening(prompt).result == ""
