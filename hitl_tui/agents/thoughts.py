"""Splits a model's thinking from its reply if both come in one text: `<think>…</think>reply`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_OPENING: Final = ("<think>", "<thinking>")
_CLOSING: Final = ("</think>", "</thinking>")
_TAGS: Final = _OPENING + _CLOSING
_LONGEST_TAG: Final = max(map(len, _TAGS))
_TOKEN: Final = re.compile(r"\n|`+|</?think(?:ing)?>", re.IGNORECASE)
_FENCE: Final = 3
"""Backticks that start and end a code block."""


class ReplyPart(NamedTuple):
    """A piece of what a model wrote, and whether it is thinking."""

    is_thought: bool
    text: str


class ThoughtSplitter:
    """Splits streamed text into thinking and reply; a tag may be cut anywhere between two pieces.

    - Tags inside code (a fenced block, or backticks on one line) are text.
    - A block that is never closed is thinking to its end.
    - A closing tag without an opening one makes everything before it thinking: many servers put the
      opening tag into the prompt. Text that was streamed before is then only left out of `reply`.
    """

    def __init__(self) -> None:
        self._held = ""
        self._reply: list[str] = []
        self._has_thoughts = False
        self._is_thinking = False
        self._is_line_start = True
        self._in_fence = False
        self._code_span = 0
        """The number of backticks that opened the code on this line, 0 outside of code."""

    @property
    def reply(self) -> str:
        """The reply so far, without thinking."""
        text = "".join(self._reply)
        return text.strip() if self._has_thoughts else text

    def feed(self, text: str) -> Iterator[ReplyPart]:
        """Add a piece; return the parts that are complete."""
        text = self._held + text
        end = len(text) - _undecided(text)
        self._held = text[end:]
        return self._split(text[:end])

    def close(self) -> Iterator[ReplyPart]:
        """End the stream; return the rest."""
        rest, self._held = self._held, ""
        return self._split(rest)

    def _split(self, text: str) -> Iterator[ReplyPart]:
        at = 0
        for token in _TOKEN.finditer(text):
            yield from self._plain(text[at : token.start()])
            yield from self._token(token[0])
            at = token.end()
        yield from self._plain(text[at:])

    def _token(self, token: str) -> Iterator[ReplyPart]:
        tag = token.lower()
        if self._is_thinking:
            if tag in _CLOSING:
                self._is_thinking = False
                self._is_line_start = True
            else:
                yield ReplyPart(True, token)
        elif tag in _TAGS and not self._in_fence and not self._code_span:
            self._has_thoughts = True
            if tag in _OPENING:
                self._is_thinking = True
                return
            self._reply.clear()
            yield ReplyPart(False, token)
        else:
            self._follow_code(token)
            yield from self._plain(token)

    def _follow_code(self, token: str) -> None:
        if token == "\n":
            self._code_span = 0
        elif not token.startswith("`"):
            return
        elif len(token) >= _FENCE and self._is_line_start and not self._code_span:
            self._in_fence = not self._in_fence
        elif not self._in_fence:
            self._code_span = {0: len(token), len(token): 0}.get(self._code_span, self._code_span)

    def _plain(self, text: str) -> Iterator[ReplyPart]:
        if self._is_thinking:
            if text:
                yield ReplyPart(True, text)
            return
        if self._has_thoughts and not any(map(str.strip, self._reply)):
            text = text.lstrip()
        if not text:
            return
        self._is_line_start = text == "\n" or (self._is_line_start and not text.strip())
        self._reply.append(text)
        yield ReplyPart(False, text)


def without_thoughts(text: str) -> str:
    """Return a complete reply without its thinking."""
    splitter = ThoughtSplitter()
    for parts in (splitter.feed(text), splitter.close()):
        for _ in parts:
            pass
    return splitter.reply


def _undecided(text: str) -> int:
    """Return how many characters at the end may be part of an unfinished tag or run of backticks."""
    if text.endswith("`"):
        return len(text) - len(text.rstrip("`"))
    start = text.rfind("<", -_LONGEST_TAG)
    tail = text[start:].lower() if start >= 0 else ""
    return len(tail) if tail and any(tag.startswith(tail) for tag in _TAGS) and tail not in _TAGS else 0
