"""The review card: what a request asks, about what, and how it may be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hitl_tui.engine.records import Request
from hitl_tui.view.run_view import RunView
from hitl_tui.view.spans import Line, Role


@dataclass(frozen=True, slots=True)
class Version:
    """A value of the subject: the step that wrote it, who did, and the raw value."""

    step: int
    who: str
    value: Any


@dataclass(frozen=True, slots=True)
class ChoiceView:
    """One allowed answer: `key` is what to press, `text` whether it takes words."""

    id: str
    key: str
    label: str
    text: Literal["none", "optional", "required"]
    recommended: bool


@dataclass(frozen=True, slots=True)
class ReviewCard:
    """A request as drawn.  `seen` is what to hand to `Driver.answer` with the answer.

    Args:
        title: what is asked, such as "The advisor says".
        badge: the verdict or None; `badge_role` its meaning.
        facts: "round 2 of 3 · opus · 214 tok".
        words: what the asker says, or the payload as JSON where it isn't known.
        about: what is decided about, how large it is and how it changed.
        votes: who voted so far, where several must.
        bound: "bound to step 4 · sha 5e431cea".
    """

    request: Request
    title: str
    badge: str | None
    badge_role: Role
    facts: Line
    words: tuple[Line, ...]
    about: tuple[Line, ...]
    votes: tuple[Line, ...]
    choices: tuple[ChoiceView, ...]
    bound: str
    seen: bytes
    high_risk: bool


def review_card(
    request: Request,
    view: RunView,
    values: Mapping[str, Any],
    *,
    version: Version | None = None,
    previous: Version | None = None,
) -> ReviewCard:
    """The card of a request.

    Args:
        values: the channel values at the step it is bound to.
        version: where the subject's value of that step comes from.
        previous: the version of the subject before it, for what changed.
    """
    raise NotImplementedError
