"""Demo models `demo/NAME`: scripted, without keys or network."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

import msgspec

from hitl_tui.agents.backend import Message
from hitl_tui.agents.scripted import ScriptedModel
from hitl_tui.errors import UsageError


class Story(msgspec.Struct, frozen=True):
    """A story: drafts 1 to 3, short forms of drafts 2 and 3, and the advisor's requests for changes."""

    versions: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    short: tuple[tuple[str, ...], tuple[str, ...]]
    wishes: tuple[str, str]


_WHY = (
    "This matters because functions travel. They are returned, stored and handed to other code, and by "
    "the time they run, the place that made them has usually been cleared away. A closure is what lets "
    "them work anyway: what they need came along."
)

_JAR_CODE = """```python
def make_note(base):
    def cook(dish):
        return f"{dish} with {base}"
    return cook

monday = make_note("smoky tomato")
print(monday("beans"))  # beans with smoky tomato
```"""

_JAR_SHORT = (
    "A note is taped to a jar of sauce: “fry onions, add two spoons of this”. Whoever cooks from it need "
    "not know what is in the jar, because the jar is right there.",
    "The note is a function, the jar a variable it did not make itself. Together they are a closure: "
    "instructions that keep hold of what was around when they were written.",
)

KITCHEN = Story(
    versions=(
        (
            "A closure is a function together with the variables it can see from the place where it was "
            "written. When the function is created, the language does not keep its text alone; it keeps a "
            "reference to the surrounding scope as well.",
            "In a kitchen you might say that a recipe is a function, and that a closure is a recipe which "
            "remembers the kitchen it was written in. It does not list every ingredient. Some it simply "
            "expects to find within reach, and it goes on finding them after everyone else has left.",
            _WHY,
        ),
        (
            "You make a sauce base on Monday and put a jar of it in the fridge, with a note taped on: “fry "
            "onions, add two spoons of this”. On Thursday a friend cooks from the note. She never saw you "
            "make the base and has no idea what is in it. The dish still tastes of Monday, because the jar "
            "is right there with the note.",
            "The note is a function. The jar is a variable it uses but did not make itself. Note and jar "
            "together are a closure: instructions that keep hold of what was around when they were "
            "written.",
            "Tape the same note to a second jar, with more chilli in it, and you have a second closure. The "
            "words are identical, the dinners are not. Each note reaches for its own jar, and neither can "
            "spoil the other.",
        ),
        (
            "You make a sauce base on Monday and tape a note to the jar: “fry onions, add two spoons of "
            "this”. On Thursday a friend cooks from the note. She never saw you make the base, yet the "
            "dish tastes of Monday, because the jar came along.",
            "In Python the note is the inner function, and the jar is `base`:",
            _JAR_CODE,
            "`make_note` finished long before `monday` runs, and `base` is still there. That pair, a "
            "function and what it holds on to, is a closure.",
            "One warning from the kitchen: the note points at the jar, it is not a photograph of it. If "
            "somebody refills the jar with something sweeter, Thursday's beans turn sweet as well.",
        ),
    ),
    short=(
        _JAR_SHORT,
        (
            *_JAR_SHORT,
            _JAR_CODE,
            "But the note points at the jar: refill the jar, and Thursday's beans change with it.",
        ),
    ),
    wishes=(
        "The first paragraph is a textbook talking to itself: nobody at a stove knows what a “scope” is. "
        "Start in the kitchen with one concrete thing, say a jar of sauce, and let the definition come last.",
        "Much better, I can taste it. But I still would not recognise a closure in real code. Add a few "
        "lines of Python with the jar in them, and say what happens when the jar changes later, because "
        "that is where people get hurt.",
    ),
)

_TICKET_CODE = """```python
def set_out(ticket):
    def at_the_gate(name):
        return f"{name} travels to {ticket}"
    return at_the_gate

traveller = set_out("Lisbon")
print(traveller("Ada"))  # Ada travels to Lisbon
```"""

_TICKET_SHORT = (
    "You put a train ticket into your coat before you leave home. At the gate you don't go back for it: "
    "you reach into the pocket.",
    "The traveller is a function, the ticket a variable it did not make itself. Together they are a "
    "closure: instructions that keep hold of what was around when they set out.",
)

COAT = Story(
    versions=(
        (
            "A closure is a function together with the variables it can see from the place where it was "
            "written. The function does not travel alone; it keeps a reference to the surrounding scope as "
            "well.",
            "Think of someone who leaves home in a coat. The traveller is the function, and what is in the "
            "pockets are its variables. The front door falls shut behind them, but whatever was pocketed "
            "inside is still at hand three cities later.",
            _WHY,
        ),
        (
            "Before you leave home you put a train ticket into your coat. An hour later you stand at a gate "
            "in another part of town, and someone asks for it. You don't go back home. You reach into the "
            "pocket, because what you needed came along.",
            "The traveller is a function. The ticket is a variable it uses but did not make itself. "
            "Traveller and pocket together are a closure: instructions that keep hold of what was around "
            "when they set out.",
            "Send off a second traveller with the same instructions and another ticket, and you have a "
            "second closure. Both do exactly the same at the gate, and they end up in different cities. "
            "Neither can reach into the other's pocket.",
        ),
        (
            "Before you leave home you put a train ticket into your coat. At the gate, in another part of "
            "town, you don't go back for it. You reach into the pocket, because what you needed came along.",
            "In Python the traveller is the inner function, and the pocket holds `ticket`:",
            _TICKET_CODE,
            "`set_out` finished long before `traveller` runs, and `ticket` is still there. That pair, a "
            "function and what it holds on to, is a closure.",
            "One warning from the road: the pocket holds the ticket itself, not a photograph of it. If "
            "somebody swaps the ticket while you are on your way, you will arrive in another city.",
        ),
    ),
    short=(
        _TICKET_SHORT,
        (
            *_TICKET_SHORT,
            _TICKET_CODE,
            "But the pocket holds the ticket itself: swap it on the way, and you arrive in another city.",
        ),
    ),
    wishes=(
        "The first paragraph is a textbook talking to itself. Start with the coat and one concrete thing "
        "in its pocket, say a ticket, and let the definition come last.",
        "Much better, I can see it. But I still would not recognise a closure in real code. Add a few lines "
        "of Python with the ticket in them, and say what happens when the ticket changes later, because "
        "that is where people get hurt.",
    ),
)

SECOND_EXAMPLE = (
    "A second example, from any web page: every “delete” button in a list knows its own row. Nobody tells "
    "it later which row that is; it has kept it since the moment it was made.",
    """```python
buttons = [make_button(row) for row in rows]
buttons[2].press()  # deletes the third row, and only that one
```""",
)

APPROVAL = (
    "approved. It opens with something one can hold, the definition comes when it is wanted, and the "
    "warning at the end is the line people will remember."
)
APPROVAL_SHORT = (
    "approved. Half the length, and nothing missing that a reader would look for. The definition now "
    "carries the whole text, and it can."
)
APPROVAL_OTHER = (
    "approved. It names the task, takes it in order and stops when it is done. More than that nobody can "
    "ask of a script."
)
EMPTY = (
    "revise: There is nothing here to read yet. Give me one concrete thing to hold on to, and one sentence "
    "about why it matters."
)


# Compiled and cached by `re` on first use.
_COMMON = (
    r"(?i:about|after|again|before|between|could|explain|every|should|their|there|these|those|through|under|"
    r"where|which|while|would|write|please|someone|something|describe)"
)


def other_story(task: str) -> Story:
    """Return three drafts that say they are scripted and use words of the task."""
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
    """Return two key words of the task: its last two long ones."""
    words = [word for word in re.findall(r"[^\W\d_]{5,}", topic) if not re.fullmatch(_COMMON, word)]
    if not words:
        return "the subject", "it"
    return (words[-2], words[-1]) if len(words) > 1 else (words[0], "it")


LAST_VERSION = 3

WISHES = {
    "short": r"(?i)\b(short\w*|brief\w*|concise|too long|cut|trim|tight\w*|half)\b",
    "no kitchen": (
        r"(?i)\b(no|not|without|drop|avoid|less|instead of|other than|too much|enough|leave out)\b"
        r".{0,30}\b(food|cook\w*|kitchen\w*|recipe\w*|sauce\w*|jars?)\b"
        r"|\b(another|different|other|new)\b.{0,20}\b(metaphor|image|picture|analogy|comparison)\b"
    ),
    "example": r"(?i)(?<!no )(?<!without )\b(example|instance)s?\b",
    "no code": (
        r"(?i)\b(no|not|without|drop|avoid|less|remove|leave out)\b.{0,20}\b(code|python|programm\w*)\b"
    ),
}
"""Requests in a human's feedback that change the draft."""

_DONE = {
    "short": "this is the short form",
    "no kitchen": "the kitchen has gone and a coat with pockets does its work",
    "example": "one more example stands at the end",
    "no code": "the code is out",
}
_WISHES_HEARD = "Taken up: “"


class StoryDraft(msgspec.Struct, frozen=True):
    """A draft: its version, 1 to 3, and the wishes that it fulfils."""

    version: int
    wishes: frozenset[str] = frozenset()


def story_of(task: str, wishes: frozenset[str] = frozenset()) -> Story:
    """Return the story for a task: the closures of the default task, or a few words about any other."""
    if "closure" not in task.casefold():
        return other_story(task)
    return COAT if "no kitchen" in wishes else KITCHEN


def compose(task: str, draft: StoryDraft) -> str:
    """Return the text of a draft."""
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


def recognise(task: str, text: str) -> StoryDraft | None:
    """Return the draft with this text; None if a human has edited it.

    Drafts with the same text count as the latest version.
    """
    body = _plain(without_note(text))
    for version in range(LAST_VERSION, 0, -1):
        for size in range(len(WISHES) + 1):
            for wishes in combinations(WISHES, size):
                draft = StoryDraft(version, frozenset(wishes))
                if _plain(compose(task, draft)) == body:
                    return draft
    return None


def wishes_in(task: str, feedback: str) -> frozenset[str]:
    """Return the wishes in a human's feedback that the script can fulfil for this task."""
    wishes = frozenset(name for name, pattern in WISHES.items() if re.search(pattern, feedback))
    return wishes if "closure" in task.casefold() else wishes - {"no kitchen", "no code"}


def rework(task: str, text: str, wishes: frozenset[str]) -> str:
    """Apply wishes to a human's own text, as far as a script can."""
    paragraphs = without_note(text).split("\n\n")
    if "no code" in wishes:
        paragraphs = [part for part in paragraphs if not part.lstrip().startswith("```")]
    if "short" in wishes:
        paragraphs = [_first_sentence(part) for part in paragraphs]
    if "example" in wishes:
        paragraphs += SECOND_EXAMPLE[:1] if "closure" in task.casefold() else [_example_of(task)]
    return "\n\n".join(paragraphs)


def note_of(feedback: str, wishes: frozenset[str]) -> str:
    """Return the closing line that says how the feedback was used."""
    quote = " ".join(feedback.split())
    quote = quote if len(quote) <= 120 else quote[:119] + "…"
    done = ", and ".join(_DONE[name] for name in WISHES if name in wishes)
    if not done:
        done = "a scripted demo can only quote this; a real model would rewrite the draft for it"
    return f"{_WISHES_HEARD}{quote}”: {done}."


def without_note(text: str) -> str:
    """Return the draft without its closing line about feedback."""
    return text.strip().removesuffix(note_in(text)).strip()


def note_in(text: str) -> str:
    """Return the draft's closing line about feedback, "" if there is none."""
    last = text.strip().rpartition("\n\n")[2]
    return last if last.startswith(_WISHES_HEARD) else ""


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


_FEEDBACK = "\n\nFeedback on your last draft:\n"
_LAST_DRAFT = "\n\nYour last draft:\n"
_TASK = "Task:\n"
_DRAFT = "\n\nDraft:\n"
_RULE = "\n\nBegin your reply with "
_ADVISES = r"(?i)\b(advisor|adviser|reviewer|editor|critic|judge)\b"


def advisor_reply(messages: Sequence[Message]) -> str:
    """Return the script's next reply in a conversation."""
    prompt = messages[-1]["content"]
    system = " ".join(message["content"] for message in messages if message["role"] == "system")
    task, drafted, draft = prompt.removeprefix(_TASK).partition(_DRAFT)
    if prompt.startswith(_TASK) and drafted:
        return _advise(task, draft.rpartition(_RULE)[0] or draft)
    task, revising, rest = prompt.partition(_FEEDBACK)
    if revising:
        feedback, _, draft = rest.partition(_LAST_DRAFT)
        return _revise(task, feedback, draft)
    if re.search(_ADVISES, system):
        return _advise(prompt, prompt)
    return compose(prompt, StoryDraft(1))


def _advise(task: str, text: str) -> str:
    if not text.strip():
        return EMPTY
    draft = recognise(task, text)
    if draft is None:
        return _approve_edited(text)
    if draft.version < LAST_VERSION:
        return f"revise: {story_of(task, draft.wishes).wishes[draft.version - 1]}"
    if "closure" not in task.casefold():
        return APPROVAL_OTHER
    return APPROVAL_SHORT if "short" in draft.wishes else APPROVAL


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
        # An earlier wish may have had no effect yet: version 2 has no code to leave out.
        kept = draft.wishes | wishes_in(task, note_in(text)) | wishes
        revised = compose(task, StoryDraft(min(draft.version + 1, LAST_VERSION), kept))
    else:
        wishes -= {"no kitchen"}
        revised = rework(task, text, wishes)
    return f"{revised}\n\n{note_of(own, wishes)}" if own else revised


def _humans_part(task: str, feedback: str) -> str:
    """Return the feedback without the advisor's own lines."""
    for story in (story_of(task), story_of(task, frozenset({"no kitchen"}))):
        for line in (*story.wishes, EMPTY.removeprefix("revise: ")):
            feedback = feedback.replace(line, "")
    return feedback.strip()


_DEMOS: dict[str, Callable[[Sequence[Message]], str]] = {"advisor": advisor_reply}


def demo_model(name: str) -> ScriptedModel:
    """Return the demo model `name`; "advisor" plays worker and advisor of an advisor workflow.

    Raises:
        UsageError: there is no demo model of that name.
    """
    if name not in _DEMOS:
        known = ", ".join(f"demo/{demo}" for demo in sorted(_DEMOS))
        raise UsageError(f"there is no demo model 'demo/{name}'", f"there are: {known}")
    return ScriptedModel(_DEMOS[name], name=f"demo/{name}")
