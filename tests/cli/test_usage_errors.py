"""Arguments that can't be read: words for people, and with --json a document, both with exit code 2."""

from __future__ import annotations

import pytest

from tests.support.commands import App


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show",), "Missing argument"),
        (("log", "r", "--limit", "x"), "'x' is not a valid integer"),
        (("threads", "--no-such-option"), "No such option"),
        (("shw", "r"), "did you mean 'show'?"),
        (("extend", "r"), "Missing argument"),
    ],
    ids=" ".join,
)
def test_with_json_wrong_arguments_are_a_document(app: App, arguments: tuple[str, ...], message: str) -> None:
    done = app.expect(2, *arguments, "--json")
    (error,) = done.documents
    assert (error["hitl_tui"], error["kind"], error["exit_code"]) == (1, "error", 2)
    assert message in error["message"]
    assert error["hint"].startswith("Usage: hitl-tui")
    assert message in done.err


def test_without_json_nothing_is_on_stdout(app: App) -> None:
    assert app.expect(2, "show").out == ""
