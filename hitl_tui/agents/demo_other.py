"""What the demo worker writes for a task the script does not know: honest, and about the task."""

from __future__ import annotations

import re

from hitl_tui.agents.demo_texts import Story

_COMMON = re.compile(
    r"(about|after|again|before|between|could|explain|every|should|their|there|these|those|through|under|"
    r"where|which|while|would|write|please|someone|something|describe)",
    re.IGNORECASE,
)


def other_story(task: str) -> Story:
    """Three drafts that say they are scripted and work in the words of the task."""
    topic = " ".join(task.split())
    topic = topic if len(topic) <= 140 else topic[:139] + "…"
    first, second = _words(topic)
    confession = (
        f"This demo follows a script, there is no language model behind it; your task was “{topic}”, and "
        "this is how an answer to it would grow."
    )
    opening = (
        f"Begin with what the reader has at hand. Before any word on {first} there should be one thing "
        f"from an ordinary day that already has to do with {second}, told in two sentences and without "
        "a single term that needs explaining."
    )
    middle = (
        f"Then name it. This is the place for the one definition the text can afford: what {first} is, and "
        f"what it is not. Whoever came for {second} should be able to repeat that sentence to somebody "
        "else the same evening."
    )
    close = (
        f"End with the mistake. There is one that almost everybody makes with {first}; saying it out loud "
        "is worth more than a third example, because it is what people remember when they need it."
    )
    return Story(
        versions=(
            (
                confession,
                f"In general terms there are many sides to {first}, and to {second} as well. There are "
                "several views, each with its merits, and much depends on the context.",
                "It is important to keep this in mind. A first draft like this one is correct, says "
                "little, and gives an advisor something to do.",
            ),
            (confession, opening, middle),
            (confession, opening, middle, close),
        ),
        short=((confession, middle), (confession, middle, close)),
        wishes=(
            f"This could be about anything: “many sides”, “several views”. Say one concrete thing about "
            f"{first} in the first sentence and build on that.",
            f"Now there is something to hold. Add how it ends: which mistake do people make with {first}, "
            "and what does it cost them?",
        ),
    )


def _words(topic: str) -> tuple[str, str]:
    """Two words that carry the task: its last two long ones."""
    found = [word for word in re.findall(r"[^\W\d_]{5,}", topic) if not _COMMON.fullmatch(word)]
    if not found:
        return "the subject", "it"
    return (found[-2], found[-1]) if len(found) > 1 else (found[0], "it")
