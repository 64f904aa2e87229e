"""Every place that reads text from outside, by name, and texts of half a megabyte made to be slow to read.

As a program it reads all of them at one place; its processor time is bounded from outside.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

SIZE: Final = 500_000


def _times(part: str) -> str:
    return (part * (SIZE // len(part) + 1))[:SIZE]


def shapes() -> Iterator[str]:
    """Twenty texts."""
    for part in (
        "\n",
        " ",
        "`",
        "```",
        "```json\n",
        "{",
        "[",
        '{"a":',
        "}",
        '"',
        "\\",
        "a",
        "1",
        "1. ",
        "a.",
        "\n\t",
    ):
        yield _times(part)
    yield "a" + " " * (SIZE - 2) + "b"
    yield "```json" + "\n" * (SIZE - 8) + "x"
    yield _times("ErrorError: bearer sk-A_A_")
    yield _times("a\u0301\u200d\x1b[31m")


def _swallow(read: Callable[[str], Any]) -> Callable[[str], None]:
    """Whatever it says of such a text, it has to say it in an error of ours."""
    from hitl_tui.agents.exchange import Misfit
    from hitl_tui.agents.tools import BadArguments
    from hitl_tui.errors import HitlError

    def swallow(text: str) -> None:
        try:
            read(text)
        except (HitlError, Misfit, BadArguments, ValueError) as error:
            assert len(str(error)) < 20_000, f"{len(str(error)):,} characters of error"  # noqa: PT017

    return swallow


def _file(read: Callable[[Path], Any], name: str) -> Callable[[str], Any]:
    folder = Path(tempfile.mkdtemp())

    def from_file(text: str) -> Any:
        path = folder / name
        path.write_text(text, encoding="utf-8", errors="replace")
        return read(path)

    return from_file


def _structured(text: str) -> Any:
    from hitl_tui.agents.structured import StructuredOutput

    return StructuredOutput({"type": "object"}).read(text)


def _fenced_reply(text: str) -> Any:
    from hitl_tui.loading.graphfile.nodes import read_json

    return read_json(text)


def _typed_json(text: str) -> Any:
    from hitl_tui.view.format import read_json

    return read_json(text)


def _plan(text: str) -> Any:
    from hitl_tui.workflows.planner import parse_lines

    return parse_lines(text, ["a", "b"])


def _word(text: str) -> Any:
    from hitl_tui.workflows.parts import find_word

    return find_word("approved", text)


def _text_match(text: str) -> Any:
    from hitl_tui.engine.graph.termination import pattern_search

    return [pattern_search(one)(text) for one in (r"(a+)+$", r"\s*\s*x", r"(\s|\n)*$", r"(.*)*b$")]


def _arguments(text: str) -> Any:
    from hitl_tui.agents.tools import Tool

    def act(a: int) -> None:
        """Do it."""

    return Tool(act).read(text)


def _foreign(text: str) -> Any:
    from hitl_tui.engine.thread.approval_formats import shape_of

    return shape_of(text + '"action_request"')


def _sanitised(text: str) -> Any:
    from hitl_tui.view.sanitise import sanitise, sanitise_line

    return sanitise(text), sanitise_line(text, 80)


def _diff(text: str) -> Any:
    from hitl_tui.view.diff import text_diff

    return text_diff(text[: SIZE // 2], text[: SIZE // 2 : -1])


def _value(text: str) -> Any:
    from hitl_tui.view.value_lines import value_lines

    return value_lines({"a": [text]}, "json")[:10], value_lines(text, "text")[:10]


def _content(text: str) -> Any:
    from hitl_tui.view.lines import content

    return content([text], 200)


def _wrapped(text: str) -> Any:
    from hitl_tui.view.rows import wrap_line
    from hitl_tui.view.sanitise import sanitise

    return wrap_line(sanitise(text, multiline=False), 80)


def _toml(path: Path) -> Any:
    from hitl_tui.loading.toml import read_toml

    return read_toml(path).place("b", "a")


def _toml_texts(text: str) -> Any:
    read = _swallow(_file(_toml, "a.toml"))
    for written in (
        text,
        f"a = {text}",
        f"{text}a = 1",
        f"a = {text[:1000]}1{text[:1000].replace('[', ']')}",
    ):
        read(written)


def _cassette(path: Path) -> Any:
    from hitl_tui.agents.cassettes import Cassette

    return Cassette(path)


def _import(text: str) -> Any:
    from hitl_tui.stores import MemoryCheckpointer
    from hitl_tui.stores.transfer import import_thread

    return import_thread(MemoryCheckpointer(), io.BytesIO(text.encode(errors="replace")))


def _reducer(text: str) -> Any:
    from hitl_tui.engine.state.reducers import parse_reducer

    return parse_reducer(text)


def _condition(text: str) -> Any:
    from hitl_tui.drivers.expressions import Expression

    return Expression(text)


def _provider_error(text: str) -> Any:
    from hitl_tui.agents import litellm_backend
    from hitl_tui.agents.redaction import redactor

    litellm_backend._NO_KEY.search(text)
    litellm_backend._NAMED_KEYS.findall(text)
    return litellm_backend._one_line(redactor({"api_key": "0123456789"})(text))


def _lines(text: str) -> Any:
    from hitl_tui.drivers.node_streams import LineSplitter

    return [
        LineSplitter().add(text),
        [lines.add(char) for lines in (LineSplitter(),) for char in text[:100_000]],
    ]


PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "structured answer": _structured,
    "fenced reply": _fenced_reply,
    "typed JSON": _typed_json,
    "plan": _plan,
    "word of a verdict": _word,
    "text_match": _text_match,
    "tool arguments": _arguments,
    "foreign interrupt": _foreign,
    "sanitise": _sanitised,
    "diff": _diff,
    "value": _value,
    "content": _content,
    "wrap": _wrapped,
    "TOML file": _toml_texts,
    "cassette": _file(_cassette, "a.jsonl"),
    "import": _import,
    "reducer": _reducer,
    "condition": _condition,
    "provider's error": _provider_error,
    "node's output": _lines,
}

if __name__ == "__main__":
    import time

    read = _swallow(PARSERS[sys.argv[1]])
    read("x")  # what is imported is not what is measured
    taken = {}
    for number, shape in enumerate(shapes()):
        before = time.process_time()
        read(shape)
        taken[number] = round(time.process_time() - before, 3)
    print(json.dumps(taken))
