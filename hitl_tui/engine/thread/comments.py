"""Comments on passages of the subject of a decision, and how a node gets them.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from hitl_tui.declared import Declaration
from hitl_tui.engine.graph.gates import read_choice
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.units import about
from hitl_tui.errors import AnswerRefused

MOST: Final = 100
LONGEST: Final = 4_000
"""Most characters of a quotation, and of the comment on it."""


class Comment(Declaration, frozen=True):
    """A reviewer's comment on a passage.

    Args:
        path: the place of the passage: the channel and the path in its value, as in `plan[1].worker`.
        offset: the index of its first character in the text, from 0.
    """

    quote: Annotated[str, about("The passage, word for word.")]
    text: Annotated[str, about("The comment on it.")]
    path: Annotated[str, about("The channel, and the path in its value.")] = ""
    offset: Annotated[int, about("The index of its first character.")] = 0


def with_comments(request: Request, value: Any, comments: Sequence[Comment]) -> Any:
    """Return an answer with the comments added to its text, as the node gets it.

    If an answer has no text, such as the fields of a form, the comments are only in the ledger.

    Raises:
        AnswerRefused: too many or too long comments, or an empty one.
    """
    _check(comments)
    if not comments or request.shape:
        return value
    if request.choices:
        chosen, words = read_choice(value)
        choice = next((choice for choice in request.choices if choice.id == chosen), None)
        if choice is None or choice.text == "none":
            return value
        return {"choice": chosen, "text": comment_words(words, comments)}
    if isinstance(value, str) and (request.schema or {}).get("type", "string") == "string":
        return comment_words(value, comments)
    return value


def comment_words(words: str, comments: Sequence[Comment]) -> str:
    """Return the reason, then each passage and its comment, numbered in the order of the text.

    >>> print(comment_words("Shorter.", [Comment("a jar", "keep one image")]))
    Shorter.
    <BLANKLINE>
    1. On “a jar”: keep one image
    """
    lines = [
        f"{number}. On “{comment.quote.strip()}”: {comment.text.strip()}"
        for number, comment in enumerate(comments, 1)
    ]
    return "\n\n".join(part for part in (words.strip(), "\n".join(lines)) if part)


def as_facts(comments: Sequence[Comment]) -> dict[str, Any]:
    """Return the comments as the ledger keeps them with the answer."""
    return {"comments": [msgspec.structs.asdict(comment) for comment in comments]} if comments else {}


def comments_of(data: Any) -> tuple[Comment, ...]:
    """Return the comments in the data of a ledger entry; () if there are none or they are malformed."""
    kept = data.get("comments") if isinstance(data, Mapping) else None
    try:
        return msgspec.convert(kept or (), tuple[Comment, ...], strict=True, from_attributes=False)
    except msgspec.ValidationError:
        return ()


def _check(comments: Sequence[Comment]) -> None:
    if len(comments) > MOST:
        raise AnswerRefused(f"{len(comments)} comments are more than {MOST}", "use fewer comments")
    for comment in comments:
        if not comment.quote.strip() or not comment.text.strip():
            raise AnswerRefused("a comment has no passage or says nothing", "give it both, or leave it out")
        if max(len(comment.quote), len(comment.text)) > LONGEST:
            raise AnswerRefused(
                f"a comment or its passage is longer than {LONGEST:,} characters", "quote less of the text"
            )
