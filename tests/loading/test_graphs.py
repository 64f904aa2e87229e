from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import GraphRunner, StateGraph
from hitl_tui.errors import GraphInvalid, UsageError
from hitl_tui.loading.code import CodeFailed
from hitl_tui.loading.graphs import load_graph, resolve_spec

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph

def make(name="made"):
    return StateGraph({"n": Channel(0)}, name=name).add_node("a", lambda state: {}).add_edge(START, "a")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def name_of(spec: str, *options: Mapping[str, Any]) -> str:
    graph = load_graph(spec, *options).graph
    assert isinstance(graph, StateGraph)
    return graph.name


def write(path: Path, text: str) -> Path:
    path.write_text(GRAPH + text)
    return path


@pytest.mark.parametrize("name", ["graph", "runner", "workflow", "build"])
def test_a_file_is_looked_through_for_the_usual_names(folder: Path, name: str) -> None:
    write(folder / "mine.py", f"other = make('other')\n{name} = make()")
    assert isinstance(load_graph("mine.py").graph, StateGraph)
    assert name_of("mine.py") == "made"


def test_a_runner_beside_its_graph_is_taken_with_its_questions_and_limits(folder: Path) -> None:
    write(folder / "mine.py", "graph = make().add_edge('a', END)\nrunner = graph.compile()")
    assert isinstance(load_graph("mine.py").graph, GraphRunner)


def test_a_function_goes_before_the_graph_that_it_builds_from(folder: Path) -> None:
    code = "graph = make().add_edge('a', END)\ndef build():\n    return graph.compile()"
    write(folder / "mine.py", code)
    assert isinstance(load_graph("mine.py").graph, GraphRunner)


def test_the_only_graph_of_a_file_needs_no_name(folder: Path) -> None:
    write(folder / "mine.py", "anything = make()")
    assert name_of("mine.py") == "made"


def test_several_graphs_need_a_name(folder: Path) -> None:
    write(folder / "mine.py", "one = make('1')\ntwo = make('2')")
    with pytest.raises(UsageError, match=r"several graphs \(one, two\)") as caught:
        load_graph("mine.py")
    assert caught.value.hint == "say which: mine.py:one"
    assert name_of("mine.py:two") == "2"


def test_a_graph_inside_another_one_is_not_what_a_file_is_about(folder: Path) -> None:
    write(
        folder / "mine.py",
        "inner = make('inner')\nouter = StateGraph({'n': Channel('')}, name='outer')\n"
        "outer.add_subgraph('sub', inner, inputs={}, outputs={})",
    )
    assert name_of("mine.py") == "outer"


def test_what_is_compiled_goes_before_what_it_was_made_from(folder: Path) -> None:
    write(folder / "mine.py", "one = make('one')\none.add_edge('a', END)\ntwo = one.compile()")
    assert isinstance(load_graph("mine.py").graph, GraphRunner)


def test_a_module_is_found_in_the_current_directory(folder: Path) -> None:
    (folder / "pack").mkdir()
    write(folder / "pack" / "inner.py", "class Holder:\n    graph = make('held')")
    assert name_of("pack.inner:Holder.graph") == "held"


def test_a_file_sees_its_neighbours_and_does_not_hide_modules(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "neighbour.py").write_text("NAME = 'from next door'")
    (folder / "sub" / "colorsys.py").write_text("raise RuntimeError('hides the library')")
    write(folder / "sub" / "mine.py", "import neighbour\ngraph = make(neighbour.NAME)")
    assert name_of("sub/mine.py") == "from next door"
    import colorsys

    assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)


def test_files_of_the_same_name_are_kept_apart(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        write(folder / name / "mine.py", f"graph = make({name!r})")
    assert name_of("a/mine.py") == "a"
    assert name_of("b/mine.py") == "b"


def test_a_function_gets_the_options_it_takes(folder: Path) -> None:
    write(folder / "mine.py", "def build(model='m', api_base=None):\n    return make(f'{model} {api_base}')")
    defaults = {"api_base": "y", "checkpointer": object()}
    assert name_of("mine.py", {"model": "x"}, defaults) == "x y"
    assert load_graph("mine.py", {"model": "x"}, defaults).options == {"model": "x", "api_base": "y"}


def test_a_function_with_any_options_gets_all(folder: Path) -> None:
    write(folder / "mine.py", "def build(**options):\n    return make(','.join(sorted(options)))")
    assert name_of("mine.py", {"model": "x"}, {"api_base": "y"}) == "api_base,model"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("def build(model):\n    return make()", "takes no --api-base", "it takes model"),
        ("def build():\n    return make()", "takes no --api-base", "it takes no options"),
        ("graph = make()", "is built already and takes no --api-base", "leave it out"),
    ],
)
def test_options_that_are_not_taken(folder: Path, text: str, message: str, hint: str) -> None:
    write(folder / "mine.py", text)
    with pytest.raises(UsageError, match=message) as caught:
        load_graph("mine.py", {"api_base": "x"})
    assert hint in caught.value.hint


def test_a_function_that_needs_more(folder: Path) -> None:
    write(folder / "mine.py", "def build(depth, *, model):\n    return make()")
    with pytest.raises(UsageError, match="needs depth"):
        load_graph("mine.py", {"model": "x"})


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("mime.py", "there is no file", "did you mean 'mine.py'?"),
        ("nowhere/mine.py", "there is no file", "there is no directory"),
        ("quite.py", "there is no file", "in that directory there are: mine.py"),
        ("mime.toml", "there is no file", "did you mean 'mine.py'?"),
        ("review.py", "there is no file", "did you mean the sample? It is called review"),
        ("empty/quite.py", "there is no file", "`hitl-tui new advisor my.toml` writes a start"),
        ("empty", "doesn't name a graph", "give module:attribute"),
        ("folder.py", "is a directory", "give a .py or .toml file"),
        ("mine.py:grahp", "there is no 'grahp' in it", "did you mean 'graph'?"),
        ("mine", "doesn't name a graph", "did you mean mine.py?"),
        ("", "doesn't name a graph", "give module:attribute"),
        ("x" * 300, "doesn't name a graph", "give module:attribute"),
        ("a b:c", "doesn't name a graph", "give module:attribute"),
        ("mine:grahp", "there is no 'grahp' in it", "did you mean 'graph'?"),
        ("no_such_module:graph", "there is no module 'no_such_module'", "path/to/file.py"),
        ("mine.deeper:graph", "there is no module 'mine.deeper'", "path/to/file.py"),
    ],
)
def test_nothing_there_of_that_name(folder: Path, spec: str, message: str, hint: str) -> None:
    write(folder / "mine.py", "graph = make()")
    write(folder / "pyproject.toml", "")
    (folder / "folder.py").mkdir()
    (folder / "empty").mkdir()
    with pytest.raises(UsageError, match=message) as caught:
        load_graph(spec)
    assert hint in caught.value.hint


@pytest.mark.parametrize("kind", ["mine.py", "mine:graph"])
def test_code_that_raises_shows_its_own_lines_only(folder: Path, kind: str) -> None:
    (folder / "mine.py").write_text("def deep():\n    return {}['key']\n\ndeep()\n")
    with pytest.raises(CodeFailed, match="KeyError: 'key'") as caught:
        load_graph(kind)
    details = caught.value.details
    assert details.startswith("Traceback (most recent call last):\n  File")
    assert details.count(str(folder / "mine.py")) == 2
    assert "line 2, in deep" in details
    assert "hitl_tui/loading" not in details
    assert "importlib" not in details
    assert caught.value.__cause__ is None


def test_a_missing_import_of_the_users_is_their_error(folder: Path) -> None:
    write(folder / "mine.py", "import not_installed_here")
    with pytest.raises(CodeFailed, match="ModuleNotFoundError: No module named 'not_installed_here'"):
        load_graph("mine:graph")


def test_a_syntax_error_names_file_and_line(folder: Path) -> None:
    (folder / "mine.py").write_text("x = 1\ndef broken(:\n")
    with pytest.raises(CodeFailed, match="SyntaxError") as caught:
        load_graph("mine.py")
    assert 'mine.py", line 2' in caught.value.details


def test_a_file_that_exits(folder: Path) -> None:
    (folder / "mine.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(CodeFailed, match="SystemExit: 3"):
        load_graph("mine.py")


def test_a_failed_file_is_read_again(folder: Path) -> None:
    (folder / "mine.py").write_text("1 / 0\n")
    with pytest.raises(CodeFailed, match="ZeroDivisionError"):
        load_graph("mine.py")
    write(folder / "mine.py", "graph = make()")
    assert name_of("mine.py") == "made"


def test_an_error_of_ours_in_their_code_keeps_its_words_and_says_where(folder: Path) -> None:
    write(folder / "mine.py", "def build():\n    return make().add_node('a', lambda state: {})")
    with pytest.raises(GraphInvalid, match="node 'a' was added twice") as caught:
        load_graph("mine.py")
    assert "in build" in caught.value.details
    assert "hitl_tui/engine" not in caught.value.details


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph = 3", "graph in mine.py is a whole number"),
        ("def build():\n    return None", "build in mine.py returned null"),
    ],
)
def test_what_is_not_a_graph(folder: Path, text: str, message: str) -> None:
    write(folder / "mine.py", text)
    with pytest.raises(GraphInvalid, match=message) as caught:
        load_graph("mine.py")
    assert "StateGraph" in caught.value.hint


def test_a_function_that_is_async_builds_nothing(folder: Path) -> None:
    write(folder / "mine.py", "async def build():\n    return make()")
    with pytest.raises(GraphInvalid, match=r"build in mine\.py is async") as caught:
        load_graph("mine.py")
    assert caught.value.hint.startswith("write def instead of async def")


def test_specs_are_made_absolute(folder: Path) -> None:
    write(folder / "mine.py", "")
    assert resolve_spec("mine.py") == str(folder / "mine.py")
    assert resolve_spec("./mine.py:x") == f"{folder / 'mine.py'}:x"
    assert resolve_spec("pack.mod:x") == "pack.mod:x"
