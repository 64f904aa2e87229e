"""The demo worker's drafts: composed from version and wishes, and recognised again from their text.

Nothing is remembered between calls.  A draft that no version and wishes compose was edited by a human.
"""

from __future__ import annotations

import re
from itertools import combinations

import msgspec

from hitl_tui.agents.demo_other import other_story
from hitl_tui.agents.demo_texts import COAT, KITCHEN, SECOND_EXAMPLE, Story

LAST_VERSION = 3

WISHES = {
    "short": re.compile(r"\b(short\w*|brief\w*|concise|too long|cut|trim|tight\w*|half)\b", re.IGNORECASE),
    "no kitchen": re.compile(
        r"\b(no|not|without|drop|avoid|less|instead of|other than|too much|enough|leave out)\b"
        r".{0,30}\b(food|cook\w*|kitchen\w*|recipe\w*|sauce\w*|jars?)\b"
        r"|\b(another|different|other|new)\b.{0,20}\b(metaphor|image|picture|analogy|comparison)\b",
        re.IGNORECASE,
    ),
    "example": re.compile(r"(?<!no )(?<!without )\b(example|instance)s?\b", re.IGNORECASE),
    "no code": re.compile(
        r"\b(no|not|without|drop|avoid|less|remove|leave out)\b.{0,20}\b(code|python|programm\w*)\b",
        re.IGNORECASE,
    ),
}
"""What a human's feedback can ask for so that the draft really changes."""

_DONE = {
    "short": "this is the short form",
    "no kitchen": "the kitchen has gone and a coat with pockets does its work",
    "example": "one more example stands at the end",
    "no code": "the code is out",
}
_TAKEN_UP = "Taken up: “"


class Draft(msgspec.Struct, frozen=True):
    """Which draft it is: version 1 to 3 and the wishes that were taken up on the way."""

    version: int
    wishes: frozenset[str] = frozenset()


def story_of(task: str, wishes: frozenset[str] = frozenset()) -> Story:
    """The story told for a task: the closures of the default task, or a few words about any other."""
    if "closure" not in task.casefold():
        return other_story(task)
    return COAT if "no kitchen" in wishes else KITCHEN


def compose(task: str, draft: Draft) -> str:
    """The text of a draft."""
    story = story_of(task, draft.wishes)
    shortened = "short" in draft.wishes and draft.version > 1
    paragraphs = story.short[draft.version - 2] if shortened else story.versions[draft.version - 1]
    if "example" in draft.wishes:
        paragraphs += SECOND_EXAMPLE if "closure" in task.casefold() else (_example_of(task),)
    if "no code" in draft.wishes:
        paragraphs = tuple(
            part for part in paragraphs if not part.startswith("```") and not part.endswith(":")
        )
    return "\n\n".join(paragraphs)


def recognise(task: str, text: str) -> Draft | None:
    """Which draft `text` is; None when a human's hand was in it.

    Drafts that read alike count as the latest version.
    """
    body = _plain(without_note(text))
    for version in range(LAST_VERSION, 0, -1):
        for size in range(len(WISHES) + 1):
            for wishes in combinations(WISHES, size):
                draft = Draft(version, frozenset(wishes))
                if _plain(compose(task, draft)) == body:
                    return draft
    return None


def wishes_in(task: str, feedback: str) -> frozenset[str]:
    """What a human's feedback asks for, as far as the script can do it for this task."""
    found = frozenset(name for name, pattern in WISHES.items() if pattern.search(feedback))
    return found if "closure" in task.casefold() else found - {"no kitchen", "no code"}


def rework(task: str, text: str, wishes: frozenset[str]) -> str:
    """A human's own text with the wishes applied as far as a script can."""
    paragraphs = without_note(text).split("\n\n")
    if "no code" in wishes:
        paragraphs = [part for part in paragraphs if not part.lstrip().startswith("```")]
    if "short" in wishes:
        paragraphs = [_first_sentence(part) for part in paragraphs]
    if "example" in wishes:
        paragraphs += SECOND_EXAMPLE[:1] if "closure" in task.casefold() else [_example_of(task)]
    return "\n\n".join(paragraphs)


def note_of(feedback: str, wishes: frozenset[str]) -> str:
    """The closing line that shows a human what became of the feedback."""
    quote = " ".join(feedback.split())
    quote = quote if len(quote) <= 120 else quote[:119] + "…"
    done = ", and ".join(_DONE[name] for name in WISHES if name in wishes)
    if not done:
        done = "a scripted demo can only quote this; a real model would rewrite the draft for it"
    return f"{_TAKEN_UP}{quote}”: {done}."


def without_note(text: str) -> str:
    """The draft without its closing line about feedback."""
    return text.strip().removesuffix(note_in(text)).strip()


def note_in(text: str) -> str:
    """The draft's closing line about feedback; empty where there is none."""
    last = text.strip().rpartition("\n\n")[2]
    return last if last.startswith(_TAKEN_UP) else ""


def _example_of(task: str) -> str:
    return (
        "An example would stand here. A script does not know one for "
        f"“{' '.join(task.split())[:80]}”, but this is where a real model would put it."
    )


def _first_sentence(paragraph: str) -> str:
    if paragraph.lstrip().startswith("```"):
        return paragraph
    return re.split(r"(?<=[.!?])\s+", paragraph.strip(), maxsplit=1)[0]


def _plain(text: str) -> str:
    return " ".join(text.split())
