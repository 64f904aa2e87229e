"""Comments on passages in lines: pinned, listed, taken back, sent with the answer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.plain.console import Terminal
from tests.plain.talker import Talker
from tests.support.commands import App


@pytest.mark.slow
def test_comments_are_sent_with_the_answer_in_the_order_of_the_text(
    talk: Talker, twelve: Path, app: App
) -> None:
    output = talk(
        'C\nC 3 too long\nC "phone book" whose?\nC 2 gone\nC back\nd\nrevise\n\nq\n',
        "resume", "blog-joins", "--plain",
    ).out  # fmt: skip
    listed, *_ = output.partition("Your comments:")
    assert "  | 2. Without one, a query reads every row" in listed
    assert "  | 1 whose?  on “phone book”" in output
    assert "  | 2 too long  on “Writes get slower" in output
    assert "Sent with your answer." in output
    asked = output.partition("With your comments:")[2]
    assert "Your answer, besides your comments:" in asked
    assert "Decided: your answer is recorded" in asked
    with closing(SQLiteCheckpointer(twelve)) as store:
        entry = next(entry for entry in reversed(store.ledger("blog-joins")) if entry.kind == "answer")
    assert [comment["text"] for comment in entry.data["comments"]] == ["whose?", "too long"]
    assert entry.data["answer"]["text"].startswith("1. On “phone book”: whose?\n2. On “Writes get slower")
    app.expect(0, "verify", "blog-joins", "--strict")


@pytest.mark.parametrize(
    ("typed", "thread", "says"),
    [
        ("C 9 hm", "blog-joins", "'9 hm' is not a comment on a passage"),
        ("C 1", "blog-joins", "'1' is not a comment on a passage"),
        ('C "no such words" hm', "blog-joins", "is not in 'latest_draft'"),
        ("C back", "blog-joins", "there is no comment to undo"),
        ("C 1 hm", "order-7", "there is no text here to comment on"),
    ],
)
@pytest.mark.slow
def test_an_invalid_comment_is_refused_with_a_reason(
    talk: Talker, twelve: Path, typed: str, thread: str, says: str
) -> None:
    output = talk(f"{typed}\nq\n", "resume", thread, "--plain").out
    assert says in output
    assert "Your comments:" not in output


@pytest.mark.slow
def test_the_text_that_is_asked_about_is_read_with_its_changes(talk: Talker, twelve: Path) -> None:
    output = talk("read\nread latest_draft\nread 99\nq\n", "resume", "blog-joins", "--plain").out
    assert output.count("latest_draft · ") == 2, output
    assert "Without one, a query reads every row" in output
    assert "no channel" in output


@pytest.mark.slow
def test_a_reviewer_is_shown_as_present_until_the_decision(
    talk: Talker, twelve: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking: list[tuple[str, tuple[str, ...]]] = []
    ask = Terminal.ask

    def seen(console: Terminal, prompt: str) -> str:
        with closing(SQLiteCheckpointer(twelve)) as store:
            at = store.attending("memo-42", store.now())
        looking.append((prompt, tuple(there.actor for there in at)))
        return ask(console, prompt)

    monkeypatch.setattr(Terminal, "ask", seen)
    talk("d\n\nq\n", "resume", "memo-42", "--plain")
    before, deciding, after = looking
    assert (before[1], after[1]) == ((), ())
    assert deciding[0].startswith("Your answer")
    assert deciding[1] == ("tester",)
