"""Copy something of a thread, as `y` on screen does.

value: the whole value of CHANNEL, or of what the request is about. path: its name. diff: what changed in it
since its last version. card: the review card as Markdown. command: the shell command that answers it. On a
terminal it goes to the clipboard; through a pipe or with --json it is printed. Private values are masked.

    hitl-tui copy r1 value draft
    hitl-tui copy r1 card > card.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.units import about
from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean
from hitl_tui.verbs.conversation import Ask, AskChoice, AskField, At, Copy, Talk, Verb
from hitl_tui.view.actions import Action, thread_open
from hitl_tui.view.session import ViewSession
from hitl_tui.view.shapes import Document

_CHOICES: Final = (
    AskChoice("value", "v", "the value"),
    AskChoice("path", "p", "path (channel and place)"),
    AskChoice("diff", "d", "what changed"),
    AskChoice("card", "m", "the whole card, as Markdown"),
    AskChoice("command", "s", "the shell command that does the same"),
)
_KINDS: Final = tuple(choice.name for choice in _CHOICES)
_WHAT: Final = AskField("what", "what to copy: value, path, diff, card or command", required=True)
_CHANNEL: Final = AskField("channel", "the channel; that of the request, if none is named")


class CopyDocument(Document, frozen=True):
    """`copy`: what was copied."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("Its newest step.")]
    what: Annotated[str, about("What it is: `value`, `path`, `diff`, `card` or `command`.")]
    text: Annotated[str, about("What was copied.")]


class _Place(NamedTuple):
    """What can be copied from."""

    session: ViewSession
    step: int
    values: Mapping[str, Any]
    channel: str
    request: Request | None
    at: At

    @property
    def part(self) -> tuple[str, Any]:
        """The path and the value of the part that is selected, of the whole value if none is."""
        part = self.at.part if self.channel == self.at.selected else None
        value = self.values.get(self.channel)
        return ("", value) if part is None or value is PRIVATE else (part.path, part.value)


async def _talk(at: At) -> Talk:
    """Ask what to copy, unless that is given."""
    place, what = await _place(at), at.given.get("what", "")
    if not what:
        where = place.channel + place.part[0]
        reply = yield Ask("Copy", (f"Of {where}:" if where else "What?",), tuple(_possible(place)))
        if reply is None:
            return
        what = reply.choice
    if what not in _KINDS:
        raise UsageError(f"{what!r} can't be copied", did_you_mean(what, _KINDS))
    text = await _text(place, what)
    head = place.session.view.progress.head
    yield Copy(text, CopyDocument(thread=place.session.thread_id, step=head, what=what, text=text))


async def _place(at: At) -> _Place:
    session = await ViewSession.open(at.hub, at.driver)
    head = session.view.progress.head
    past = at.step is not None and at.step != head
    step = head if at.step is None else at.step
    values = await at.driver.state_at(step) if past else session.view.values
    asked = [each for each in session.requests if not each.breakpoint and not past]
    request = next((each for each in asked if each.id == at.request), asked[0] if asked else None)
    named = at.given.get("channel") or at.selected or (request.subject if request else None) or ""
    return _Place(session, step, values, named, request, at)


def _possible(place: _Place) -> list[AskChoice]:
    """Return the choices that apply here."""
    hidden = place.values.get(place.channel) is PRIVATE
    there = {
        "value": bool(place.channel),
        "path": bool(place.channel),
        "diff": bool(place.channel) and not hidden,
        "card": place.request is not None,
    }
    return [choice for choice in _CHOICES if there.get(choice.name, True)]


async def _text(place: _Place, what: str) -> str:
    from hitl_tui.view.copying import answer_command, became, diff_copy, show_command, value_copy

    session, request, channel = place.session, place.request, place.channel
    if what == "command":
        if request is None:
            return show_command(session.thread_id, place.step)
        return answer_command(session.thread_id, request, *place.at.answering)
    if what == "card":
        return await _card(place)
    if channel not in place.values:
        wrong = f"there is no channel {channel!r}" if channel else "no channel is named"
        raise UsageError(wrong, did_you_mean(channel, place.values))
    path, value = place.part
    if what == "path":
        return channel + path
    if what == "value":
        return value_copy(value)
    revised = None if value is PRIVATE else await became(session, channel, place.step)
    if revised is None:
        raise UsageError(f"{channel!r} has no earlier version", "copy its value")
    return diff_copy(revised)


async def _card(place: _Place) -> str:
    from hitl_tui.view.card import newest_versions, review_card
    from hitl_tui.view.copying import card_copy

    request, view = place.request, place.session.view
    if request is None:
        raise UsageError("nothing waits for a decision, so there is no card", "copy a value, or the command")
    subject = request.subject
    pair = await newest_versions(place.session, subject, request.step) if subject else (None, None)
    card = review_card(request, view, view.values, version=pair[0], previous=pair[1])
    return card_copy(card, view.values.get(subject or ""))


VERB = Verb(
    None,
    _talk,
    Action(
        "look.copy", "y", "Copy", "Copy the value, its path, what changed, the card or a command", "Look",
        thread_open, on_card=True,
    ),
    after="look.costs",
    letter="K",
    arguments=(_WHAT, _CHANNEL),
)  # fmt: skip
