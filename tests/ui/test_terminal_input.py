"""What a terminal sends: pasted text stays text, and what came together with other letters is known."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence

import pytest
from textual import events
from textual.message import Message

from hitl_tui.ui import terminal_input
from hitl_tui.ui.terminal_input import (
    PASTE_END,
    PASTE_START,
    InputParser,
    clean_paste,
    is_burst,
    is_held_down,
)

DANGEROUS = (
    "reads well so far \x1bx\x1b\ra\r",
    "fine \x1b]8;;https://example.org/doc/1/\ra\r",
    "abc\x1b[31mred end\x1b[0m",
    "\x1b[200~again\r",
    "almost the end: \x1b[201 ~a\r",
    "\x9b31mred\x9d0;title\x07 \x1b",
    "",
)


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(terminal_input.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def feed(parser: InputParser, pieces: Iterable[str]) -> list[Message]:
    return [message for piece in pieces for message in (*parser.feed(piece), *parser.tick())]


def split(text: str, chance: random.Random) -> list[str]:
    """A text in pieces of random lengths."""
    pieces: list[str] = []
    while text:
        size = chance.randint(1, 5)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def keys(messages: Sequence[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


def pastes(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, events.Paste)]


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_paste_is_text_in_its_order_however_it_is_split(text: str) -> None:
    for seed in range(50):
        sent = f"{PASTE_START}{text}{PASTE_END}"
        messages = feed(InputParser(), split(sent, random.Random(seed)))
        assert pastes(messages) == [clean_paste(text)]
        assert keys(messages) == []
        assert not set(clean_paste(text)) & {"\x1b", "\x9b", "\x9d"}


def test_silence_inside_a_paste_makes_no_key_of_it(clock: Clock) -> None:
    parser = InputParser()
    messages: list[Message] = []
    for piece in ("\x1b", "[", "20", "0~well \x1b", "x\x1b", "[2", "01", "~"):
        messages += feed(parser, [piece])
        clock.now += 0.5
        messages += parser.tick()
    # The first two were keys, as far as anybody could know then; nothing after them is.
    assert keys(messages) == ["escape", "left_square_bracket"]
    assert pastes(messages) == ["well x"]


def test_keys_around_a_paste_keep_their_places(clock: Clock) -> None:
    messages = feed(InputParser(), [f"\x1b[A{PASTE_START}a\rb{PASTE_END}\x1b[B"])
    shown = [message.text if isinstance(message, events.Paste) else message.key for message in messages]  # type: ignore[attr-defined]
    assert shown == ["up", "a\rb", "down"]


def test_an_escape_key_is_still_a_key_and_sequences_may_be_split(clock: Clock) -> None:
    parser = InputParser()
    assert keys(feed(parser, ["\x1b"])) == []
    clock.now += 0.2
    assert keys(list(parser.tick())) == ["escape"]
    clock.now += 5
    assert keys(feed(parser, ["\x1b", "[", "5", "~"])) == ["pageup"]


def test_letters_that_arrive_together_are_marked_and_single_ones_are_not(clock: Clock) -> None:
    parser = InputParser()

    def marked(text: str) -> list[bool]:
        clock.now += 1
        return [is_burst(message) for message in feed(parser, [text]) if isinstance(message, events.Key)]

    assert marked("a") == [False]
    assert marked("\r") == [False]
    assert marked("\x1b[B\x1b[B") == [False, False]
    assert marked("ok\r") == [True, True, True]
    assert marked(f"{PASTE_START}text{PASTE_END}a") == [True]
    assert marked(f"a{PASTE_START}text{PASTE_END}") == [True]
    assert marked("a") == [False]
    clock.now += 0.001
    assert [is_burst(message) for message in parser.feed("l")] == [True]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (0, events.MouseDown),
        (4, events.MouseDown),
        (1, None),
        (2, None),
        (35, events.MouseMove),
        (64, events.MouseScrollUp),
        (128, None),
        (129, None),
    ],
)
def test_only_the_left_button_counts(code: int, kind: type[Message] | None) -> None:
    messages = feed(InputParser(), [f"\x1b[<{code};5;6M"])
    assert [type(message) for message in messages] == ([kind] if kind else [])


def test_a_paste_whose_end_is_lost_can_be_left(clock: Clock) -> None:
    parser = InputParser()
    assert feed(parser, [f"{PASTE_START}text", "\x03"]) == []
    clock.now += 2
    messages = feed(parser, ["\x03"])
    assert (pastes(messages), keys(messages)) == (["text\x03"], ["ctrl+c"])
    assert keys(feed(parser, ["x"])) == ["x"]


def test_a_large_paste_costs_little() -> None:
    text = "line of a log \x1b[31m\r" * 50_000
    sent = f"{PASTE_START}{text}{PASTE_END}"
    begin = time.process_time()
    messages = feed(InputParser(), [sent[at : at + 4096] for at in range(0, len(sent), 4096)])
    assert time.process_time() - begin < 1
    assert pastes(messages) == [clean_paste(text)]


def test_a_held_key_is_distinguished_from_typed_text(clock: Clock):
    parser = InputParser()
    held = [is_held_down(message) for message in feed(parser, ["jjj"])]
    clock.now += 1
    text = [is_held_down(message) for message in feed(parser, ["jaj"])]
    clock.now += 1
    alone = [is_burst(message) for message in feed(parser, ["j"])]
    assert (held, text, alone) == ([True] * 3, [False] * 3, [False])
