"""The frames of an error: whose they are, what they hold, and what never gets into them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import Channel, MemoryCheckpointer
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.secrets import masked_source
from hitl_tui.engine.nodes.frames import Masks, code_of, file_of, frames_of
from hitl_tui.errors import described_with_causes
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain

PUBLIC = Masks({})


def caught(function: Any, *args: Any) -> BaseException:
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        function(*args)
    return raised.value


def values(frame: Frame) -> dict[str, str]:
    return {value.name: value.text for value in frame.values}


def inner(text: str, *rest: int, **more: int) -> float:
    number = re.search(r"\d+", text)
    return float(number[0])  # type: ignore[index]


def outer() -> float:
    reply = "n/a"
    return inner(reply, 1, more=2)


def test_each_frame_has_its_place_its_lines_and_its_locals() -> None:
    *_, calls, fails = frames_of(caught(outer), PUBLIC)
    assert (calls.function, fails.function) == ("outer()", "inner(text, *rest, **more)")
    assert calls.file == fails.file == __file__
    at = fails.lines[fails.line - fails.first]
    assert at.strip().startswith("return float(number[0])")
    assert values(calls) == {"reply": "'n/a'"}
    assert values(fails) == {"text": "'n/a'", "rest": "(1,)", "more": "{'more': 2}", "number": "None"}


def test_frames_of_libraries_are_counted_by_library_and_those_before_the_users_are_left_out() -> None:
    def hook(pairs: Any) -> Any:
        raise ValueError("no")

    frames = frames_of(caught(lambda: json.loads('{"a": 1}', object_pairs_hook=hook)), PUBLIC)
    kinds = [(frame.library, frame.count > 1) if frame.library else frame.function for frame in frames]
    assert kinds[-2:] == [("Python", True), "hook(pairs)"]
    assert frames[0].file == __file__


def test_an_error_of_a_library_alone_has_no_frames() -> None:
    error = caught(json.loads, "{")
    error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
    while error.__traceback__ and error.__traceback__.tb_frame.f_code.co_filename == __file__:
        error.__traceback__ = error.__traceback__.tb_next
    assert frames_of(error, PUBLIC) == ()


class Loud:
    called = 0

    def __init__(self) -> None:
        self.kept = [1, 2]

    def __repr__(self) -> str:
        type(self).called += 1
        time.sleep(60)
        raise RuntimeError

    __str__ = __len__ = __iter__ = __eq__ = __hash__ = __bool__ = __repr__  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        type(self).called += 1
        return object.__getattribute__(self, name)


class LoudList(list[Any]):
    __repr__ = __len__ = __iter__ = __getitem__ = Loud.__repr__  # type: ignore[assignment]


class LoudText(str):
    __slots__ = ()
    __repr__ = __str__ = __len__ = __getitem__ = __contains__ = Loud.__repr__  # type: ignore[assignment]


def test_no_code_of_the_user_is_called() -> None:
    def fails() -> None:
        loud, items, text = Loud(), LoudList([1]), LoudText("words")  # noqa: F841
        by_default = defaultdict(Loud, a=1)  # noqa: F841
        Loud.called = 0
        raise ValueError

    shown = values(frames_of(caught(fails), PUBLIC)[-1])
    assert shown == {
        "loud": "<Loud 'kept': [1, 2]>",
        "items": "[1]",
        "text": "'words'",
        "by_default": "{'a': 1}",
    }
    assert Loud.called == 0


def test_values_are_bounded_in_size_count_and_depth() -> None:
    def fails() -> None:
        long = "x" * 100_000
        deep: list[Any] = [[[[[1]]]]]
        circle: list[Any] = []
        circle.append(circle)
        wide = dict.fromkeys(range(1000), 0)
        huge = 7**5000
        raise ValueError(long, deep, circle, wide, huge)

    shown = values(frames_of(caught(fails), PUBLIC)[-1])
    assert len(shown["long"]) < 300
    assert shown["long"].endswith("… 100000 characters")
    assert shown["deep"] == "[[[[… 1]]]]"
    assert shown["circle"] == "[[[[… 1]]]]"
    assert shown["wide"].endswith(", … 1000 items}")
    assert shown["huge"] == "<int of 14037 bits>"


def recurses(depth: int, note: str = "y" * 190) -> None:
    others = [note] * 20  # noqa: F841
    if depth:
        recurses(depth - 1)
    raise ValueError


def test_a_deep_recursion_keeps_its_innermost_frames() -> None:
    frames = frames_of(caught(recurses, 300), PUBLIC)
    assert 1 < len(frames) <= 8
    assert values(frames[-1])["depth"] == "0"
    assert sum(len(value.text) for frame in frames for value in frame.values) < 14_000


SECRET = "hunter2-the-token"
CLEAN = {
    "by itself": lambda secret: secret,
    "inside a list": lambda secret: [1, secret],
    "as a key": lambda secret: {secret: 1},
    "inside a text": lambda secret: f"token={secret};",
    "in an object": lambda secret: type("Held", (), {"__init__": lambda s: setattr(s, "x", secret)})(),
    "in a long text": lambda secret: "z" * 190 + secret,
}


@pytest.mark.parametrize("held", CLEAN.values(), ids=CLEAN)
def test_a_private_value_is_masked_wherever_it_turns_up(held: Any) -> None:
    def fails() -> None:
        value = held(SECRET)  # noqa: F841
        raise ValueError

    shown = values(frames_of(caught(fails), Masks({"token": {"key": SECRET}}))[-1])["value"]
    assert SECRET not in shown
    assert "hunter" not in shown
    assert "[private]" in shown


@pytest.mark.slow
def test_a_part_of_a_long_private_text_is_masked_too() -> None:
    secret = " ".join(f"word{number}" for number in range(10_000))

    def fails() -> None:
        part, all_of_it = secret[5000:5200], secret  # noqa: F841
        raise ValueError

    shown = values(frames_of(caught(fails), Masks({"diary": secret}))[-1])
    assert shown["part"] == "'[private]'"
    assert "word" not in shown["all_of_it"]


def test_what_is_called_like_a_private_channel_is_masked_before_it_is_one() -> None:
    def fails() -> None:
        token = "not in the state yet"  # noqa: F841
        update = {"token": "nor is this"}  # noqa: F841
        raise ValueError

    shown = values(frames_of(caught(fails), Masks({"token": None}))[-1])
    assert shown == {"token": "[private]", "update": "{'token': [private]}"}


def test_numbers_and_truth_of_private_channels_are_masked_by_their_value() -> None:
    def fails() -> None:
        vote, age, other, said = True, 41, 1, "aged 4711"  # noqa: F841
        raise ValueError

    shown = values(frames_of(caught(fails), Masks({"a": True, "b": [41], "c": 4711}))[-1])
    assert shown == {"vote": "[private]", "age": "[private]", "other": "1", "said": "'aged [private]'"}


def node(state: Any, config: Any) -> Any:
    password = state["secret"]
    words = f"login with {password} and {state['n']}"
    raise ValueError(len(words))


CHANNELS = {"n": Channel(3), "secret": Channel("correct horse", visibility="private")}


def test_a_failed_node_keeps_its_frames_with_the_thread_and_nothing_private_in_them(tmp_path: Path) -> None:
    url = tmp_path / "t.db"
    from hitl_tui import SQLiteCheckpointer

    runner = chain(CHANNELS, node).compile(checkpointer=SQLiteCheckpointer(str(url)))
    with pytest.raises(Exception, match="ValueError"):
        runner.invoke({"n": 3}, thread_id="t")
    store: Checkpointer = SQLiteCheckpointer(str(url))
    cursor = store.cursor("t")
    assert cursor is not None
    assert cursor.error is not None
    (frame,) = cursor.error.frames
    assert frame.function == "node(state, config)"
    assert values(frame) == {"password": "[private]", "words": "'login with [private] and 3'"}


class Client:
    def __init__(self) -> None:
        self.api_key = "hidden one"
        self.model = "small"


def signs_in(key: str, url: str) -> None:
    client, headers = Client(), {"Authorization": "Basic hidden", "Accept": "text"}
    access_token = (
        "hidden in "
        'two parts'
    )  # fmt: skip
    note = "refused: sk-hidden-0123456789, Bearer hidden.too"
    raise OSError(client, headers, access_token, note)


def test_keys_in_code_and_locals_are_recognised_and_masked() -> None:
    frame = frames_of(caught(signs_in, "topic", "http://host"), PUBLIC)[-1]
    kept = "\n".join((*frame.lines, *values(frame).values()))
    assert re.search("[h]idden|[t]wo parts", kept) is None
    assert (
        frame.lines[frame.line - frame.first].strip() == "raise OSError(client, headers, access_token, note)"
    )
    assert {"        '[secret]'", '    note = "refused: [secret], [secret]"'} <= set(frame.lines)
    assert values(frame) == {
        "key": "'topic'",
        "url": "'http://host'",
        "client": "<Client 'api_key': [secret], 'model': 'small'>",
        "headers": "{'Authorization': [secret], 'Accept': 'text'}",
        "access_token": "[secret]",
        "note": "'refused: [secret], [secret]'",
    }


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("""k = env.get("API_KEY", 'dev')""", """k = env.get("API_KEY", '[secret]')"""),
        ("""env["TOKEN"] = f"x{n}y" """, """env["TOKEN"] = f"[secret]" """),
        ('PASSWORD: str | None = "it\'s"', 'PASSWORD: str | None = "[secret]"'),
        (r'if password != r"a\"b":', 'if password != r"[secret]":'),
        ('secret = """\none\n\n  two""" + "x"', 'secret = """\n[secret]\n\n[secret]""" + "x"'),
        ('password = "not ended', 'password = "[secret]'),
        ('keys = 3; name = "plain"', 'keys = 3; name = "plain"'),
        ('clientApiKey = OPENAI_KEY = "x"', 'clientApiKey = OPENAI_KEY = "[secret]"'),
        ('raise KeyError("no price")', 'raise KeyError("no price")'),
        ('sorted(x, key="name")', 'sorted(x, key="name")'),
        ('primary_key="id"; max_tokens = "50"', 'primary_key="id"; max_tokens = "50"'),
        ('memory_key="chat"; key = "user_memory"', 'memory_key="chat"; key = "user_memory"'),
        ('keyboard = "qwerty"; monkey = "george"', 'keyboard = "qwerty"; monkey = "george"'),
        ('Tokenizer("bert-base")', 'Tokenizer("bert-base")'),
        ('make(credential=it, model="small")', 'make(credential=it, model="small")'),
    ],
)
def test_literals_assigned_to_secret_names_are_masked(source: str, left: str) -> None:
    assert masked_source(source.split("\n")) == left.split("\n")


def test_an_error_that_none_of_its_lines_raised_has_the_place_of_the_node() -> None:
    runner = chain(CHANNELS, lambda state, config: {"nowhere": 1}).compile(checkpointer=MemoryCheckpointer())
    with pytest.raises(Exception, match="nowhere"):
        runner.invoke({}, thread_id="t")
    error = runner.invoke
    cursor = runner.store.cursor("t") if runner.store else None
    assert error
    assert cursor is not None
    assert cursor.error is not None
    (frame,) = cursor.error.frames
    assert (frame.file, frame.function, frame.values) == (__file__, "<lambda>(state, config)", ())


def test_code_shows_no_secret_and_nothing_that_is_private() -> None:
    def signs() -> str:
        api_key = "hunter2-and-more"
        return f"{api_key} of Ada Lovelace"

    frame = code_of(signs, Masks({"who": ["Ada Lovelace"]}))
    assert frame is not None
    for code in ("\n".join(frame.lines), "\n".join(file_of(frame, Masks({"name": "test_frames"})).lines)):
        assert "def " in code
        assert "hunter2" not in code
    assert "Lovelace" not in "\n".join(frame.lines)
    assert "of [private]" in "\n".join(frame.lines)


async def grouped() -> None:
    async def fails(name: str) -> None:
        raise KeyError(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fails("one"))
        tasks.create_task(fails("two"))


def wrapped() -> None:
    try:
        inner("none")
    except TypeError as error:
        raise ValueError("no number") from error


def test_an_error_names_its_causes_and_the_errors_of_a_group() -> None:
    assert described_with_causes(caught(wrapped)).startswith("ValueError: no number; caused by TypeError: ")
    group = caught(asyncio.run, grouped())
    text = described_with_causes(group)
    assert text.startswith("ExceptionGroup: ")
    assert text.endswith(": KeyError: 'one'; KeyError: 'two'")
    assert [frame.function for frame in frames_of(group, PUBLIC) if frame.file][-1].startswith("fails(")
    circle = ValueError("a")
    circle.__cause__ = ValueError("b")
    circle.__cause__.__cause__ = circle
    assert described_with_causes(circle) == "ValueError: a; caused by ValueError: b"
