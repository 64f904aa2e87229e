from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hitl_tui import GraphRunner, ScriptedModel, UsageError
from hitl_tui.cli.about import new
from hitl_tui.loading.graphs import load_graph
from hitl_tui.loading.starts import STARTS, write_start


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setitem(ScriptedModel.__init__.__kwdefaults__, "pace", 0.0)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path


@pytest.mark.parametrize("name", ["mine.toml", "my own – “file”.toml", 'a\\b".toml'])
@pytest.mark.parametrize("template", STARTS)
def test_a_start_runs_as_it_is(folder: Path, template: str, name: str) -> None:
    write_start(template, Path(name))
    runner = load_graph(name).graph
    assert isinstance(runner, GraphRunner)
    inputs = {runner.graph.inputs[0].name: runner.graph.inputs[0].example} if template != "counter" else {}
    result = runner.invoke(inputs, thread_id="t")
    assert result.status == ("completed" if template in ("counter", "blank") else "waiting")


def test_a_start_says_what_it_wrote_and_what_to_do_next(folder: Path) -> None:
    result = CliRunner().invoke(new, ["review", "my file.toml"])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "wrote my file.toml",
        "run it:       hitl-tui run 'my file.toml'",
        "with a model: add --model NAME, as in --model ollama/llama3.2",
    ]


def test_a_start_without_agents_offers_no_model(folder: Path) -> None:
    result = CliRunner().invoke(new, ["counter", "mine.toml"])
    assert result.output.splitlines() == [
        "wrote mine.toml",
        "wrote mine.py",
        "run it:       hitl-tui run mine.toml",
    ]


def test_a_start_names_the_schema_of_this_installation(folder: Path) -> None:
    write_start("blank", Path("mine.toml"))
    first = Path("mine.toml").read_text().partition("\n")[0]
    assert first.startswith("#:schema file:///")
    assert first.endswith("/hitl_tui/loading/graph-file.schema.json")


@pytest.mark.parametrize("there", ["mine.toml", "mine.py"])
def test_new_overwrites_nothing_and_leaves_no_partial_file(folder: Path, there: str) -> None:
    (folder / there).write_text("precious")
    with pytest.raises(UsageError, match=f"there is a file {there} already"):
        write_start("counter", Path("mine.toml"))
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [(there, "precious")]


@pytest.mark.parametrize(
    ("template", "name", "message", "hint"),
    [
        ("advsor", "mine.toml", "there is no template 'advsor'", "did you mean 'advisor'?"),
        ("advisor", "mine", "'mine' is not a graph file name", "as in mine.toml"),
        ("advisor", "mine.py", "'mine.py' is not a graph file name", "as in mine.toml"),
        ("advisor", "a\x1bb.toml", "is not a graph file name", ""),
        (
            "advisor",
            "no/mine.toml",
            "no/mine.toml can't be written: No such file or directory",
            "another place",
        ),
    ],
)
def test_what_cannot_be_written(folder: Path, template: str, name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        write_start(template, Path(name))
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert list(folder.iterdir()) == []
