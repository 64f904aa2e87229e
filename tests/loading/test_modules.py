"""Two projects in one process, whose modules have the same names: each runs its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import importlib
import pickle
import subprocess
import sys
import threading
import typing
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hitl_tui import StateGraph
from hitl_tui.errors import UsageError
from hitl_tui.loading.code import CodeFailed, code_files, forget_code, import_file, import_named
from hitl_tui.loading.graphs import load_graph
from hitl_tui.loading.langgraph_json import load_langgraph_json
from hitl_tui.loading.modules import ModuleNameTaken, forget_projects
from hitl_tui.loading.sources import open_graph, source_file
from hitl_tui.stores import MemoryCheckpointer

BOTH = ("a", "b")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Start without projects, and leave none."""
    forget_projects()
    before, path = set(sys.modules), list(sys.path)
    yield
    forget_projects()
    assert sys.path == path
    assert not [name for name in set(sys.modules) - before if "@" in name]


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def two(place: Path, files: Mapping[str, str], name: str = "flow.py") -> list[ModuleType]:
    """The module of `name` in two directories with the same files; each has its own letter for WHO."""
    folders = [
        write(place / who, {name: text.replace("WHO", repr(who)) for name, text in files.items()})
        for who in BOTH
    ]
    return [import_file(folder / name) for folder in folders]


HELPER = "def who(): return WHO\n"


@pytest.mark.parametrize(
    "ask",
    [
        "import helper\nasked = helper.who()",
        "from helper import who\nasked = who()",
        "from helper import *\nasked = who()",
        "import importlib\nasked = importlib.import_module('helper').who()",
        "from importlib import import_module\nasked = import_module('helper').who()",
        "asked = __import__('helper').who()",
        "space = {}\nexec('import helper', space)\nasked = space['helper'].who()",
        "import package.inner.part as part\nasked = part.helper.who()",
        "import package.inner.part\nasked = package.inner.part.who()",
        "from package.inner import part\nasked = part.who()",
        "from package import shown\nasked = shown()",
        "import importlib\nasked = importlib.import_module('.part', 'package.inner').who()",
        "from plain_directory import helper as found\nasked = found.who()",
        "import importlib.util as util\nspec = util.find_spec('helper')\n"
        "found = util.module_from_spec(spec)\n"
        "spec.loader.exec_module(found)\nasked = found.who()",
        "import importlib, helper\nasked = importlib.reload(helper).who()",
    ],
)
def test_each_imports_its_own(tmp_path: Path, ask: str) -> None:
    package = {
        "package/__init__.py": "from .inner.part import who as shown\n",
        "package/inner/__init__.py": "",
        "package/inner/part.py": "import helper\nfrom ..other import who\n",
        "package/other.py": HELPER,
        "plain_directory/helper.py": HELPER,
    }
    modules = two(tmp_path, {"flow.py": ask, "helper.py": HELPER, **package})
    assert [module.asked for module in modules] == [*BOTH]


LAZY = """
import importlib
def ask():
    import late
    from package import part
    return late.who(), part.who(), importlib.import_module("late").who()
async def wait():
    return ask()
"""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_function_imports_its_own_once_it_runs_on_any_thread(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    files = {"flow.py": LAZY, "late.py": HELPER, "package/__init__.py": "", "package/part.py": HELPER}
    modules = two(tmp_path, files)
    runs: list[Callable[[ModuleType], Any]] = [
        lambda module: module.ask(),
        lambda module: asyncio.run(module.wait()),
        lambda module: in_thread(module.ask),
        lambda module: in_thread(lambda: asyncio.run(module.wait())),
    ]
    for run in runs:
        for number in order:
            assert set(run(modules[number])) == {BOTH[number]}


def in_thread(call: Callable[[], Any]) -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_two_threads_that_import_at_once_get_their_own(tmp_path: Path) -> None:
    modules = two(tmp_path, {"flow.py": LAZY, "late.py": HELPER, "package/part.py": HELPER})
    for _ in range(20):
        start = threading.Barrier(2)

        def ask(module: ModuleType, start: threading.Barrier = start) -> set[str]:
            start.wait()
            return set(module.ask())

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            assert list(pool.map(ask, modules)) == [{"a"}, {"b"}]
        for name in [name for name in sys.modules if name.partition("@")[0] in ("late", "package")]:
            sys.modules.pop(name)


PLUGIN = """
import os, sys, importlib.util
file = os.path.join(os.path.dirname(__file__), "plugins", "plugin.py")
spec = importlib.util.spec_from_file_location("plugin", file)
plugin = importlib.util.module_from_spec(spec)
sys.modules["plugin"] = plugin
spec.loader.exec_module(plugin)
ask = plugin.ask
"""


@pytest.mark.parametrize(
    "code",
    [
        PLUGIN,
        "import types\ndef lazy():\n    import helper\n    return helper.who()\n"
        "ask = lambda: types.FunctionType(lazy.__code__, {'__builtins__': __builtins__})()",
        "def ask():\n    space = {'__name__': 'x', '__file__': '/x.py'}\n"
        "    exec(compile('from helper import who', '/x.py', 'exec'), space)\n    return space['who']()",
        "def ask(): return eval('__import__(\"helper\").who()')",
        "import pkgutil\ndef ask(): return pkgutil.resolve_name('helper:who')()",
        "import importlib.resources as kept\ndef ask(): return kept.files('data').joinpath('x').read_text()",
        "import unittest.mock, helper\ndef ask():\n"
        "    with unittest.mock.patch('helper.who', lambda: WHO): return helper.who()",
    ],
    ids=["by-path", "other-globals", "exec", "eval", "pkgutil", "resources", "mock"],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_library_that_imports_for_a_project_gets_its_own(
    tmp_path: Path, code: str, order: tuple[int, int]
) -> None:
    late = "def ask():\n    import helper\n    return helper.who()\n"
    files = {"plugins/plugin.py": late, "data/__init__.py": "", "helper.py": HELPER, "flow.py": code}
    for who in BOTH:
        write(tmp_path / who, {"data/x": who})
    modules = two(tmp_path, files)
    assert [modules[number].ask() for number in (*order, *order)] == [
        BOTH[number] for number in (*order, *order)
    ]
    sys.modules.pop("plugin", None)


def test_an_archive_without_a_name_is_refused(tmp_path: Path) -> None:
    for who in BOTH:
        write(
            tmp_path / who,
            {"flow.py": "import sys\nsys.path.append(__file__[:-7] + 'lib.zip')\nimport inside"},
        )
        with zipfile.ZipFile(tmp_path / who / "lib.zip", "w") as archive:
            archive.writestr("inside.py", f"who = {who!r}")
    assert import_file(tmp_path / "a" / "flow.py").inside.who == "a"
    with pytest.raises(CodeFailed) as refused:
        import_file(tmp_path / "b" / "flow.py")
    assert all(str(tmp_path / who / "lib.zip" / "inside.py") in refused.value.message for who in BOTH)
    del sys.modules["inside"]


def test_a_module_that_only_another_project_has_is_not_there(tmp_path: Path) -> None:
    code = "def ask():\n    import extra\n    return extra.who()\n"
    first, second = two(tmp_path, {"flow.py": code})
    write(tmp_path / "a", {"extra.py": "def who(): return 'a'\n"})
    with pytest.raises(ModuleNotFoundError, match="No module named 'extra'"):
        second.ask()
    assert first.ask() == "a"
    with pytest.raises(
        ModuleNotFoundError, match=r"No module named 'extra' for the code in .*b; .*a/extra.py"
    ):
        second.ask()


def test_what_nobody_of_a_project_asks_for_is_refused_with_both_files(tmp_path: Path) -> None:
    """On a thread that runs a library's function, nothing tells whose import it is."""
    two(tmp_path, {"flow.py": "import helper", "helper.py": HELPER})
    for call in (lambda: importlib.import_module, lambda: importlib.util.find_spec, lambda: __import__):
        with pytest.raises(ModuleNameTaken) as refused:
            on_a_librarys_thread(call(), "helper")
        assert all(str(tmp_path / who / "helper.py") in str(refused.value) for who in BOTH)
    assert on_a_librarys_thread(importlib.import_module, "json").__name__ == "json"


def on_a_librarys_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *arguments).result()


DATA = """
from __future__ import annotations
import dataclasses, enum, typing
import pydantic
class Kind(enum.Enum):
    OF = WHO
@dataclasses.dataclass
class Item:
    who: Kind
class Model(pydantic.BaseModel):
    items: list[Later] = []
class Later(pydantic.BaseModel):
    kind: typing.Literal[WHO] = WHO
"""


def test_classes_are_found_by_the_modules_that_they_name(tmp_path: Path) -> None:
    """As typing, pydantic, pickle and checkpointers of LangGraph find them."""
    modules = two(tmp_path, {"flow.py": DATA})
    for who, module in zip(BOTH, modules, strict=True):
        item = module.Item(module.Kind.OF)
        assert pickle.loads(pickle.dumps(item)) == item
        assert importlib.import_module(type(item).__module__).Item is module.Item
        assert typing.get_type_hints(module.Item) == {"who": module.Kind}
        assert dataclasses.fields(module.Item)[0].name == "who"
        assert module.Model(items=[{"kind": who}]).items[0].kind == who


def test_a_pickle_that_names_a_module_of_two_projects_is_read_as_its_own_or_refused(tmp_path: Path) -> None:
    reading = "import pickle\ndef read(data): return pickle.loads(data)\nclass Own: who = WHO\n"
    first, second = two(tmp_path, {"flow.py": reading})
    written = pickle.dumps(first.Own())
    assert first.read(written).who == "a"
    with pytest.raises(ModuleNameTaken) as refused:
        second.read(written)  # `flow` is written in it, whoever wrote it
    assert all(str(tmp_path / who / "flow.py") in str(refused.value) for who in BOTH)


def test_a_private_name_of_another_process_means_the_same_class(tmp_path: Path) -> None:
    _, second = two(tmp_path, {"flow.py": "class Own: ...\ndef make(): return Own()"})
    written = pickle.dumps(second.make())
    forget_projects()
    alone = import_file(tmp_path / "b" / "flow.py")
    assert (alone.__name__, second.__name__ != "flow") == ("flow", True)
    assert type(pickle.loads(written)) is alone.Own


def test_each_is_read_again_alone(tmp_path: Path) -> None:
    first, second = two(
        tmp_path, {"flow.py": f"import helper\n{LAZY}", "late.py": HELPER, "helper.py": HELPER}
    )
    write(tmp_path, {"b/package/part.py": "who = lambda: 'b'", "a/package/part.py": "who = lambda: 'a'"})
    assert (set(first.ask()), set(second.ask())) == ({"a"}, {"b"})
    for who, module in (("b", second), ("a", first)):
        write(tmp_path / who, {"helper.py": f"def who(): return '{who} now'\n"})
        forget_code(tmp_path / who)
        again = import_file(tmp_path / who / "flow.py")
        assert again is not module
        assert (again.helper.who(), again.__name__) == (f"{who} now", module.__name__)
        assert (first.helper.who(), second.helper.who()) == BOTH
        assert (set(first.ask()), set(second.ask()), set(again.ask())) == ({"a"}, {"b"}, {who})


def test_a_module_that_was_written_since_is_found_once_the_file_is_loaded_again(tmp_path: Path) -> None:
    code = "import colorsys\ndef ask():\n    import colorsys\n    return colorsys.__file__"
    for module, who in zip(two(tmp_path, {"flow.py": code}), BOTH, strict=True):
        library = module.ask()
        write(tmp_path / who, {"colorsys.py": ""})
        assert module.ask() == library
        forget_code(tmp_path / who)
        assert import_file(tmp_path / who / "flow.py").ask() == str(tmp_path / who / "colorsys.py")


def test_a_module_whose_file_is_gone_stays_while_it_is_loaded(tmp_path: Path) -> None:
    code = "import helper\ndef ask():\n    import helper\n    return helper.who()"
    modules = two(tmp_path, {"flow.py": code, "helper.py": HELPER})
    for who in BOTH:
        (tmp_path / who / "helper.py").unlink()
    forget_code(tmp_path / "other")
    assert [module.ask() for module in modules] == [*BOTH]


def test_the_files_of_each_are_known(tmp_path: Path) -> None:
    two(tmp_path, {"flow.py": "import helper, package.part", "helper.py": "", "package/part.py": ""})
    for who in BOTH:
        files = {"flow.py", "helper.py", "package/part.py"}
        assert code_files(tmp_path / who) == {tmp_path / who / file for file in files}


def test_a_name_is_free_again_once_its_module_is_forgotten(tmp_path: Path) -> None:
    first, second = two(tmp_path, {"flow.py": "def ask():\n    import helper\n    return helper.who()"})
    write(tmp_path, {"a/helper.py": "def who(): return 'a'", "b/helper.py": "def who(): return 'b'"})
    assert first.ask() == "a"
    forget_code(tmp_path / "a")
    assert (second.ask(), first.ask(), second.ask()) == ("b", "a", "b")


@pytest.mark.parametrize("name", ["json", "yaml", "colorsys", "msgspec"])
def test_a_module_beside_goes_before_a_library_but_libraries_keep_theirs(tmp_path: Path, name: str) -> None:
    library = importlib.import_module(name)
    code = f"import {name}\ndef ask():\n    from {name} import who\n    return {name}.who(), who()"
    modules = two(tmp_path, {"flow.py": code, f"{name}.py": HELPER})
    assert [module.ask() for module in modules] == [("a", "a"), ("b", "b")]
    assert importlib.import_module(name) is library
    assert on_a_librarys_thread(importlib.import_module, name) is library


def test_a_file_with_the_name_of_a_package_imports_the_package(tmp_path: Path) -> None:
    modules = two(tmp_path, {"msgspec.py": "import msgspec\nwho = WHO, msgspec.json.encode(1)"}, "msgspec.py")
    assert [module.who for module in modules] == [("a", b"1"), ("b", b"1")]


@pytest.mark.parametrize("init", [True, False], ids=["with __init__", "without"])
@pytest.mark.parametrize("graph", ["agent", "mail"])
@pytest.mark.parametrize(
    "code",
    [
        "from mail.parts import who",
        "from mail import parts\nwho = parts.who",
        "import mail.parts\nwho = mail.parts.who",
    ],
)
def test_a_package_that_has_a_module_of_its_own_name_is_imported(
    tmp_path: Path, code: str, graph: str, init: bool
) -> None:
    asked = []
    for who in BOTH:
        files = {"parts.py": HELPER, "mail.py": "", **({"__init__.py": ""} if init else {})}
        files[f"{graph}.py"] = f"{code}\ndef ask(): return who()"
        package = write(
            tmp_path / who / "src/mail",
            {name: text.replace("WHO", repr(who)) for name, text in files.items()},
        )
        if init:
            assert import_file(package / f"{graph}.py").ask() == who
            forget_projects()
        config = project(tmp_path / who, {"g": f"./src/mail/{graph}.py:ask"}, ["."])
        asked.append(load_langgraph_json(config, "g").value)
    assert [ask() for ask in asked] == list(BOTH)


def test_a_package_elsewhere_in_the_project_goes_before_a_module_beside_where_a_part_of_it_is_imported(
    tmp_path: Path,
) -> None:
    code = "import mail\nfrom mail.parts import who\ndef ask(): return mail.BESIDE, who()"
    files = {
        "graphs/flow.py": code,
        "graphs/mail.py": "BESIDE = 1",
        "mail/parts.py": HELPER.replace("WHO", "2"),
    }
    config = project(write(tmp_path, files), {"g": "./graphs/flow.py:ask"}, ["."])
    assert load_langgraph_json(config, "g").value() == (1, 2)


def test_modules_of_the_interpreter_and_our_own_are_never_a_projects(tmp_path: Path) -> None:
    code = "import sys, os, hitl_tui\nfrom hitl_tui import StateGraph"
    files = {"sys.py": "raise OSError", "os.py": "raise OSError", "hitl_tui/__init__.py": "raise OSError"}
    for module in two(tmp_path, {"flow.py": code, **files}):
        assert (module.sys, module.StateGraph) == (sys, StateGraph)


@pytest.mark.parametrize(
    "name", ["flow.py", "my-flow.py", "my.flow.py", "json.py", "package.py", "__main__.py"]
)
def test_graph_files_of_one_name_are_two_modules(tmp_path: Path, name: str) -> None:
    first, second = two(tmp_path, {name: "who = WHO", "package/__init__.py": ""}, name)
    assert (first.who, second.who) == BOTH
    assert import_file(tmp_path / "b" / name) is second
    assert all(sys.modules[module.__name__] is module for module in (first, second))


def test_what_a_file_puts_on_the_path_is_its_own(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "lib"))
import tool
def ask():
    import other_tool
    return tool.who(), other_tool.who(), other_tool.tool.who()
"""
    path = list(sys.path)
    files = {"flow.py": code, "lib/tool.py": HELPER, "lib/other_tool.py": f"import tool\n{HELPER}"}
    modules = two(tmp_path, files)
    assert sys.path == path
    assert [module.ask() for module in modules] == [("a",) * 3, ("b",) * 3]
    added = (
        "import sys\nsys.path.append(WHERE + '/later')\ndef ask():\n    import later\n    return later.who()"
    )
    for who in BOTH:
        where = repr(str(tmp_path / who))
        late = {"two.py": added.replace("WHERE", where), "later/later.py": f"def who(): return {who!r}"}
        write(tmp_path / who, late)
    modules = [import_file(tmp_path / who / "two.py") for who in BOTH]
    assert [module.ask() for module in modules] == [*BOTH]


def test_a_directory_above_that_both_put_on_the_path_serves_each(tmp_path: Path) -> None:
    write(tmp_path, {"common.py": "import helper\ndef who(): return helper.who()\n"})
    code = "import sys\nsys.path.append(__file__.rsplit('/', 2)[0])\nimport common\nasked = common.who()"
    modules = two(tmp_path, {"flow.py": code, "helper.py": HELPER})
    assert [module.asked for module in modules] == [*BOTH]


GRAPH = """
from hitl_tui import END, START, Channel, StateGraph
from {package} import helper

def act(state):
    import late
    return {{"said": f"{{helper.who()}}{{late.who()}}"}}

def build() -> StateGraph:
    graph = StateGraph({{"said": Channel("")}}, name="g").add_node("act", act)
    return graph.add_edge(START, "act").add_edge("act", END)
"""


def said(spec: str, directory: Path | None = None) -> Any:
    runner = open_graph(spec, MemoryCheckpointer(), directory=directory)
    return runner.invoke(thread_id="t")["said"]


def test_a_module_and_its_attribute_is_looked_for_in_its_directory(tmp_path: Path) -> None:
    for who in BOTH:
        files = {"app/__init__.py": "", "app/flow.py": GRAPH.format(package="app"), "late.py": HELPER}
        files |= {"app/helper.py": HELPER}
        write(tmp_path / who, {name: text.replace("WHO", repr(who)) for name, text in files.items()})
    assert [said("app.flow:build", tmp_path / who) for who in (*BOTH, "a")] == ["aa", "bb", "aa"]
    for who in BOTH:
        source = {"graph": "app.flow:build", "directory": str(tmp_path / who)}
        assert source_file(source) == tmp_path / who / "app" / "flow.py"
    write(tmp_path / "c", {"other.py": ""})
    with pytest.raises(UsageError, match=r"there is no module 'app.flow' in"):
        load_graph("app.flow:build", directory=tmp_path / "c")
    assert import_named("hitl_tui.errors", tmp_path).__name__ == "hitl_tui.errors"


TOML = """
[graph]
name = "g"
[channels.words]
default = []
reducer = "rules:join"
[nodes.act]
function = "rules:act"
writes = ["words"]
[[edges]]
from = "START"
to = "act"
[[edges]]
from = "act"
to = "END"
"""


def test_the_functions_and_reducers_of_a_graph_file_are_its_own(tmp_path: Path) -> None:
    rules = "def join(old, new): return [*old, WHO + new]\ndef act(state): return {'words': WHO}\n"
    for who in BOTH:
        write(tmp_path / who, {"flow.toml": TOML, "rules.py": rules.replace("WHO", repr(who))})
    for who in BOTH:
        runner = open_graph(str(tmp_path / who / "flow.toml"), MemoryCheckpointer())
        assert runner.invoke(thread_id="t")["words"] == [who * 2]
        assert runner.graph.info.channels[0].reducer == "rules:join"


def test_the_digest_of_a_graph_and_its_reducers_depend_on_no_private_name(tmp_path: Path) -> None:
    code = """
from helper import join
from hitl_tui import END, START, Channel, StateGraph
def mine(old, new): return new
class Thing:
    size = 3
def act(state):
    return {"one": str(Thing.size)}
channels = {
    "one": Channel("", reducer=mine),
    "two": Channel("", reducer=join),
    "three": Channel("", reducer="helper:join"),
}
graph = StateGraph(channels, name="g").add_node("act", act).add_edge(START, "act").add_edge("act", END)
"""
    for who in BOTH:
        write(tmp_path / who, {"flow.py": code, "helper.py": "def join(old, new): return old + new"})
    first, second = (open_graph(str(tmp_path / who / "flow.py"), MemoryCheckpointer()).graph for who in BOTH)
    assert first.digest == second.digest
    assert [channel.reducer for channel in second.info.channels] == [
        "flow.py:mine",
        "helper:join",
        "helper:join",
    ]


def test_an_error_has_the_names_that_the_code_has(tmp_path: Path) -> None:
    two(tmp_path, {"flow.py": "import package", "package/__init__.py": ""})
    for line in (
        "import package.missing",
        "from package import missing",
        "import importlib as i\ni.import_module('package.missing')",
    ):
        write(tmp_path / "b", {"flow.py": line})
        forget_code(tmp_path / "b")
        with pytest.raises(CodeFailed) as failed:
            import_file(tmp_path / "b" / "flow.py")
        assert "package" in failed.value.message
        assert "@" not in failed.value.message + str(failed.value.details)


def test_a_file_that_failed_keeps_no_name(tmp_path: Path) -> None:
    write(tmp_path, {"a/flow.py": "import helper", "a/helper.py": "1 / 0", "b/flow.py": "import helper"})
    write(tmp_path, {"b/helper.py": ""})
    with pytest.raises(CodeFailed, match="ZeroDivisionError"):
        import_file(tmp_path / "a" / "flow.py")
    assert import_file(tmp_path / "b" / "flow.py").helper.__name__ == "helper"


def project(folder: Path, graphs: Mapping[str, str], dependencies: list[str]) -> Path:
    import json

    config = folder / "langgraph.json"
    write(folder, {config.name: json.dumps({"graphs": graphs, "dependencies": dependencies})})
    return config


def test_projects_of_langgraph_import_from_their_own_dependencies(tmp_path: Path) -> None:
    """Also where two share a directory, whose modules import what each of the two has."""
    flow = """
import inside, shared, setting
from package import part
def ask(): return WHO, shared.ask(), part.who(), inside.who()
"""
    write(tmp_path, {"shared/shared.py": "def ask():\n    import setting\n    return setting.who()"})
    asked = []
    for who in BOTH:
        files = {"graphs/flow.py": flow, "setting.py": HELPER, "src/package/part.py": HELPER}
        files |= {"graphs/inside.py": HELPER}
        write(tmp_path / who, {name: text.replace("WHO", repr(who)) for name, text in files.items()})
        config = project(tmp_path / who, {"g": "./graphs/flow.py:ask"}, [".", "../shared"])
        asked.append(load_langgraph_json(config, "g").value)
    assert [ask() for ask in asked] == [("a",) * 4, ("b",) * 4]


def test_the_graphs_of_one_project_share_its_modules_and_not_those_beside_them(tmp_path: Path) -> None:
    code = "import common, helper\ndef ask(): return helper.who()\n"
    for who in BOTH:
        write(tmp_path / who, {"flow.py": code, "helper.py": HELPER.replace("WHO", repr(who))})
    write(tmp_path, {"common.py": ""})
    config = project(tmp_path, {who: f"./{who}/flow.py:ask" for who in BOTH}, ["."])
    first, second = (load_langgraph_json(config, who).value for who in BOTH)
    assert (first(), second()) == BOTH
    assert first.__globals__["common"] is second.__globals__["common"]


def test_two_files_of_one_directory_with_different_dependencies_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"flow.py": "import conf\ndef ask(): ...", "one/conf.py": "", "two/conf.py": ""})
    config = project(tmp_path, {"g": "./flow.py:ask"}, ["./one"])
    other = config.rename(tmp_path / "other.json")
    config = project(tmp_path, {"g": "./flow.py:ask"}, ["./two"])
    load_langgraph_json(config, "g")
    with pytest.raises(UsageError) as refused:
        load_langgraph_json(other, "g")
    assert str(config) in refused.value.message
    assert str(other) in refused.value.message


def test_a_program_beside_a_project_shares_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", {"flow.py": "import helper_of_a", "helper_of_a.py": ""})
    write(tmp_path / "b", {"flow.py": "import helper_of_a\nwho = helper_of_a.who()"})
    write(tmp_path / "b", {"helper_of_a.py": "def who(): return 'b'"})
    with monkeypatch.context() as program:
        program.syspath_prepend(tmp_path / "a")
        helper = importlib.import_module("helper_of_a")
        assert import_file(tmp_path / "a" / "flow.py").helper_of_a is helper
        assert import_file(tmp_path / "b" / "flow.py").who == "b"
        assert importlib.import_module("helper_of_a") is helper
        forget_projects()
    sys.modules.pop("helper_of_a", None)


@pytest.mark.integration
def test_a_project_alone_can_start_processes_that_import_from_it(tmp_path: Path) -> None:
    code = """
import multiprocessing
def who(): return "child"
def ask():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(who)
"""
    write(tmp_path, {"flow.py": code})
    program = f"""
from pathlib import Path
from hitl_tui.loading.code import import_file
if __name__ == "__main__":
    print(import_file(Path({str(tmp_path / "flow.py")!r})).ask())
"""
    (tmp_path / "elsewhere").mkdir()
    main = write(tmp_path / "elsewhere", {"main.py": program}) / "main.py"
    run = subprocess.run([sys.executable, "-P", str(main)], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.returncode) == ("child", 0), run.stderr
