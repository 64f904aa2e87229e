from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui.engine.graph.description import GraphInfo, InputField
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.errors import UsageError
from hitl_tui.view.inputs import Inputs


def graph() -> GraphInfo:
    kinds = {"messages": "list", "draft": "text", "n": "number", "options": "dict", "anything": ""}
    return GraphInfo(
        name="g",
        nodes=(),
        edges=(),
        channels=tuple(
            ChannelInfo(name, kind, "overwrite", "public", "", {}) for name, kind in kinds.items()
        ),
        inputs=(InputField("task", "messages", "Task"),),
    )


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("task=12", "12"),
        ("task=a=b", "a=b"),
        ("task=", ""),
        ("draft=true", "true"),
        ("n=12", 12),
        ("n=many", "many"),
        ('options={"a": [1]}', {"a": [1]}),
        ('messages=["a", "b"]', ["a", "b"]),
        ("messages=hello", "hello"),
        ("anything=null", None),
        ("unknown=7", 7),
    ],
)
def test_text_input_is_converted_to_the_channels_type(given: str, value: Any) -> None:
    assert Inputs([given]).for_graph(graph()) == {given.partition("=")[0]: value}


def test_a_file_gives_several(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"n": 1, "draft": "x"}')
    inputs = Inputs([f"@{path}", "task=t"])
    assert inputs
    assert inputs.for_graph(graph()) == {"n": 1, "draft": "x", "task": "t"}


def test_nothing_given_is_nothing() -> None:
    assert not Inputs([])


@pytest.mark.parametrize(
    ("given", "content", "message"),
    [
        (["task"], "", "'task' has no name and value"),
        (["=x"], "", "has no name and value"),
        (["n=1", "n=2"], "", "gives 'n' twice"),
        (["n=1", "@in.json"], '{"n": 2}', "gives 'n' twice"),
        (["@none.json"], "", "none.json: can't be read: No such file"),
        (["@in.json"], "[1]", "in.json: holds a list"),
        (["@in.json"], "{", "in.json: "),
    ],
)
def test_mistakes_are_named(
    given: list[str], content: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.json").write_text(content)
    with pytest.raises(UsageError) as caught:
        Inputs(given)
    assert message in caught.value.message
