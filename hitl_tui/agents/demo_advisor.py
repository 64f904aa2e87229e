"""demo/advisor: worker and advisor of an advisor workflow, from the last message alone.

Nothing is kept between calls, so a run that is killed and resumed in another process goes on in the
script.  The formats are those of `hitl_tui.workflows.advisor`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitl_tui.agents import demo_texts as texts
from hitl_tui.agents.backend import Message
from hitl_tui.agents.demo_drafts import (
    LAST_VERSION,
    Draft,
    compose,
    note_in,
    note_of,
    recognise,
    rework,
    story_of,
    wishes_in,
    without_note,
)

_FEEDBACK = "\n\nFeedback on your last draft:\n"
_LAST_DRAFT = "\n\nYour last draft:\n"
_TASK = "Task:\n"
_DRAFT = "\n\nDraft:\n"
_RULE = "\n\nBegin your reply with "
_ADVISES = re.compile(r"\b(advisor|adviser|reviewer|editor|critic|judge)\b", re.IGNORECASE)


def advisor_reply(messages: Sequence[Message]) -> str:
    """The next line of the script for a conversation."""
    prompt = messages[-1]["content"]
    system = " ".join(message["content"] for message in messages if message["role"] == "system")
    task, drafted, draft = prompt.removeprefix(_TASK).partition(_DRAFT)
    if prompt.startswith(_TASK) and drafted:
        return _advise(task, draft.rpartition(_RULE)[0] or draft)
    task, revising, rest = prompt.partition(_FEEDBACK)
    if revising:
        feedback, _, draft = rest.partition(_LAST_DRAFT)
        return _revise(task, feedback, draft)
    if _ADVISES.search(system):
        return _advise(prompt, prompt)
    return compose(prompt, Draft(1))


def _advise(task: str, text: str) -> str:
    if not text.strip():
        return texts.EMPTY
    draft = recognise(task, text)
    if draft is None:
        return _approve_edited(text)
    if draft.version < LAST_VERSION:
        return f"revise: {story_of(task, draft.wishes).wishes[draft.version - 1]}"
    if "closure" not in task.casefold():
        return texts.APPROVAL_OTHER
    return texts.APPROVAL_SHORT if "short" in draft.wishes else texts.APPROVAL


def _approve_edited(text: str) -> str:
    opening = " ".join(without_note(text).split()[:6]).rstrip(".,;:")
    return (
        f"approved. This is not the draft as it was written for me: a human hand was in it, and from "
        f"“{opening}” on it knows what it wants. I would not change it back."
    )


def _revise(task: str, feedback: str, text: str) -> str:
    draft = recognise(task, text)
    own = _humans_part(task, feedback)
    wishes = wishes_in(task, own)
    if draft:
        # An earlier wish may not show yet in the text: version 2 has no code to leave out.
        kept = draft.wishes | wishes_in(task, note_in(text)) | wishes
        revised = compose(task, Draft(min(draft.version + 1, LAST_VERSION), kept))
    else:
        wishes -= {"no kitchen"}
        revised = rework(task, text, wishes)
    return f"{revised}\n\n{note_of(own, wishes)}" if own else revised


def _humans_part(task: str, feedback: str) -> str:
    """What is left of the feedback without the advisor's own lines."""
    for story in (story_of(task), story_of(task, frozenset({"no kitchen"}))):
        for line in (*story.wishes, texts.EMPTY.removeprefix("revise: ")):
            feedback = feedback.replace(line, "")
    return feedback.strip()
