"""Comments on passages of a request's subject, in plain text mode: added, listed, undone."""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import waiting_requests, which_request
from hitl_tui.view.comments import Passage, comment_lines, destination, passages, pin
from hitl_tui.view.format import capital
from hitl_tui.view.lines import content, name, sentence, spans

_PASSAGES: Final = 60
_HINT: Final = 'C 3 COMMENT, or C "passage" COMMENT; C lists the passages'


def comment(context: Context, typed: str) -> None:
    """Comment on a passage: its number or its words in quotes, then the comment.

    "back" undoes the last comment; alone it lists the passages, and the comments on them.

    Raises:
        UsageError: no request is about a text, there is no such passage, or the comment is empty.
    """
    snapshot = context.snapshot()
    request = which_request(context, waiting_requests(snapshot), "")
    if request is None:
        return
    subject = request.subject or ""
    found = passages(subject, snapshot.values.get(subject)) if subject else ()
    if not found:
        raise UsageError("there is no text here to comment on", "d decides")
    if typed == "back":
        if not context.comments_on(request):
            raise UsageError("there is no comment to undo", _HINT)
        context.drop_comment(request)
    elif typed.startswith('"'):
        quote, _, text = typed[1:].partition('"')
        context.add_comment(request, pin(subject, snapshot.values[subject], quote, text.strip()))
    elif typed:
        context.add_comment(request, _numbered(found, typed))
    else:
        numbered = [f"{number}. {passage.text}" for number, passage in enumerate(found, 1)]
        context.console.say(f"Passages of {name(subject)}:", *content(numbered, _PASSAGES))
    print_comments(context, request)


def print_comments(context: Context, request: Request) -> None:
    """Print the comments on passages so far, and where they are sent."""
    comments = context.comments_on(request)
    if comments:
        goes = sentence(destination(request))
        context.console.say("Your comments:", *spans(comment_lines(comments)), capital(goes))


def _numbered(found: tuple[Passage, ...], typed: str) -> Comment:
    number, _, text = typed.partition(" ")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= len(found) and text.strip()):
        raise UsageError(f"{typed!r} is not a comment on a passage", _HINT)
    passage = found[int(number) - 1]
    return Comment(passage.text, text.strip(), passage.path, passage.offset)
