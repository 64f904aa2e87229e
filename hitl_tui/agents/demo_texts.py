"""What the demo worker and advisor say about closures: text only, in two metaphors.

A story has three versions, each a tuple of paragraphs, a short form, and what the advisor says
about the first two.  Paragraphs that begin with a code fence can be left out.
"""

from __future__ import annotations

from typing import NamedTuple


class Story(NamedTuple):
    """One way to tell it: versions 1 to 3, what stays of 2 and 3 when short, the advisor's wishes."""

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
