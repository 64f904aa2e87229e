"""Saves answers that are not sent yet: a file for each person and request in the user's data directory."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from hitl_tui.engine.thread.comments import Comment

_LARGEST: Final = 8 << 20
_VERSION: Final = 1


class UnsentAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a person has chosen and typed for one request.

    Args:
        title: the title of the request.
        asked: the hash of the request: what was decided applies to no other one.
        words: the reason, or the answer as text.
        fields: the texts of the form's fields, by their paths.
        comments: the comments on passages.
        decided: the decisions about the first of several actions, each with its label and edited arguments.
        editing: whether the form is about the arguments of the current action.
        value: the value from the editor, in a tuple; () for none.
        reasons: the ids of the picked reasons.
        scores: by criterion of the rubric.
    """

    thread: str
    request: str
    title: str = ""
    asked: str = ""
    words: str = ""
    fields: tuple[tuple[tuple[str, ...], str], ...] = ()
    comments: tuple[Comment, ...] = ()
    decided: tuple[tuple[Any, str, Any], ...] = ()
    editing: bool = False
    value: tuple[Any, ...] = ()
    reasons: tuple[str, ...] = ()
    scores: dict[str, int] = {}
    version: int = _VERSION

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen or typed."""
        typed = self.words.strip() or self.fields or self.comments
        return not (typed or self.decided or self.value or self.reasons or self.scores)


class UnsentAnswers:
    """The files of one person's unsent answers to the requests of one store.

    Losing them must stop nobody's work: a file that can't be read is skipped, one that can't be written is
    reported once.

    Args:
        folder: the directory of the files.
        store: the place of the store: the same for every process that opens it.
        actor: the person.

    Attributes:
        problem: the problem to report, "" for none.
    """

    def __init__(self, folder: Path, store: str, actor: str) -> None:
        self._folder = folder
        self._owner = f"{store}\0{actor}"
        self.problem = ""

    def load(self, thread: str, request: str) -> UnsentAnswer | None:
        """Return the unsent answer to a request, None for none."""
        return _read(self._file(thread, request))

    def save(self, answer: UnsentAnswer) -> None:
        """Save an answer, all or nothing; an empty one has no file."""
        if answer.is_empty:
            self.remove(answer.thread, answer.request)
            return
        file, temporary = self._file(answer.thread, answer.request), ""
        try:
            data = msgspec.json.encode(answer, enc_hook=dict)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._folder, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
            os.replace(temporary, file)
        except (OSError, TypeError, ValueError) as error:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)
            why = getattr(error, "strerror", "") or str(error)
            self.problem = f"what you type can't be saved before you send it: {why}"

    def remove(self, thread: str, request: str) -> None:
        """Remove an answer that was sent, or whose card was closed for good."""
        with suppress(OSError):
            self._file(thread, request).unlink(missing_ok=True)

    def take_gone(self, thread: str, waiting: Collection[str]) -> tuple[UnsentAnswer, ...]:
        """Remove and return the answers to requests of a thread that wait no more."""
        gone = []
        for file in sorted(self._folder.glob(f"{self._prefix(thread)}-*.json")):
            answer = _read(file)
            if answer is not None and answer.request not in waiting:
                gone.append(answer)
                self.remove(thread, answer.request)
        return tuple(gone)

    def _prefix(self, thread: str) -> str:
        return _digest(f"{self._owner}\0{thread}")

    def _file(self, thread: str, request: str) -> Path:
        return self._folder / f"{self._prefix(thread)}-{_digest(request)}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:20]


def _read(file: Path) -> UnsentAnswer | None:
    try:
        if file.stat().st_size > _LARGEST:
            return None
        answer = msgspec.json.decode(file.read_bytes(), type=UnsentAnswer)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return answer if answer.version == _VERSION else None
