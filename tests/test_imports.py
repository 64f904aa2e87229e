"""What each package may load, seen in a fresh process: heavy modules come late."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from contextlib import closing
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import hitl_tui
from hitl_tui import SQLiteCheckpointer
from tests.support.flows import line

HEAVY = {"textual", "rich", "litellm"}


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh Python loads while it runs `code`."""
    program = f"""
import sys
before = set(sys.modules)
{code}
print("\\n", *{{name.partition('.')[0] for name in sys.modules.keys() - before}})
"""
    result = subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True, timeout=150
    )
    return set(result.stdout.splitlines()[-1].split())


def commands(lines: list[str], *options: str) -> str:
    """Code that calls one command after the other, each of which must succeed."""
    return f"""
from hitl_tui.cli.main import main
for line in {lines!r}:
    sys.argv = ["hitl-tui", *line.split(), *{options!r}]
    try:
        main()
    except SystemExit as left:
        assert left.code == 0, (line, left.code)
"""


def modules_of(package: str) -> list[str]:
    """The modules of a package, without those that are loaded for a run of LangGraph, which loads rich."""
    found = import_module(package)
    names = [package, *(info.name for info in pkgutil.walk_packages(found.__path__, f"{package}."))]
    return [name for name in names if name not in WITH_LANGGRAPH]


WITH_LANGGRAPH = {"hitl_tui.drivers.langgraph.model_streams"}
LIGHT = ["engine", "stores", "agents", "workflows", "loading", "drivers", "view", "plain", "cli"]


@pytest.mark.slow
def test_only_ui_loads_the_screen_and_nobody_loads_models() -> None:
    names = [name for package in LIGHT for name in modules_of(f"hitl_tui.{package}")]
    loaded = loaded_by(f"import {', '.join(names)}")
    # Looked for one by one only where it matters: each takes a second.
    blamed = [
        package
        for package in LIGHT
        if HEAVY & loaded and HEAVY & loaded_by(f"import {', '.join(modules_of(f'hitl_tui.{package}'))}")
    ]
    assert not HEAVY & loaded, blamed


@pytest.mark.slow
def test_ui_loads_no_models() -> None:
    names = modules_of("hitl_tui.ui")
    assert "litellm" not in loaded_by(f"import {', '.join(names)}")


def imports_inside(package: str, *, types: bool) -> dict[str, set[str]]:
    """What each module of a package imports of it, anywhere; with `types` also for a type checker alone."""
    names = set(modules_of(package))
    graph: dict[str, set[str]] = {}
    for name in names:
        source = import_module(name).__file__
        assert source is not None
        todo: list[ast.AST] = [ast.parse(Path(source).read_text(encoding="utf-8"))]
        found = graph.setdefault(name, set())
        while todo:
            node = todo.pop()
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
                continue
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = (f"{node.module}.{alias.name}" for alias in node.names)
                found.update((names & {node.module, *whole}) - {name})
            todo.extend(ast.iter_child_nodes(node))
    return graph


@pytest.mark.slow
def test_no_module_imports_one_that_imports_it() -> None:
    assert list(TopologicalSorter(imports_inside("hitl_tui", types=False)).static_order())


@pytest.mark.slow
def test_not_even_types_go_in_a_circle_in_ui() -> None:
    assert list(TopologicalSorter(imports_inside("hitl_tui.ui", types=True)).static_order())


def test_the_run_screen_has_few_files_and_none_of_its_parts_holds_it() -> None:
    ui = Path(hitl_tui.__file__).parent / "ui"
    assert len(list((ui / "screens").glob("run*.py"))) <= 5
    names = {"RunScreen", "RunPanes", "StageScreen"}
    holders = [
        (path.name, owner.name)
        for path in ui.rglob("*.py")
        for owner in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(owner, ast.ClassDef) and owner.name not in {"HitlApp", *names}
        for node in ast.walk(owner)
        if isinstance(node, ast.Name) and node.id in names
    ]
    assert holders == []


def test_help_loads_nothing_heavy() -> None:
    code = commands(["--help", "--version", "demo --help", "run --help", "threads --help"])
    assert not (HEAVY | {"sqlite3", "msgspec", "asyncio", "logging"}) & loaded_by(code)


@pytest.mark.slow
def test_looking_loads_no_event_loop_and_no_log_file(tmp_path: Path) -> None:
    place = tmp_path / "runs.db"
    with closing(SQLiteCheckpointer(place)) as store:
        line(store, lambda state: {"log": "one"}).invoke({}, thread_id="t")
    code = commands(["threads", "show t --json", "log t", "log t --json"], "--store", str(place))
    assert not (HEAVY | {"asyncio", "logging", "platformdirs"}) & loaded_by(code)


def test_importing_the_package_loads_no_library() -> None:
    assert loaded_by("import hitl_tui") - set(sys.stdlib_module_names) == {"hitl_tui"}


def test_a_type_checker_sees_the_public_names_and_no_others() -> None:
    tree = ast.parse(Path(hitl_tui.__file__).read_text(encoding="utf-8"))
    type_checking = next(
        one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"
    )
    names = {
        alias.name for one in type_checking.body if isinstance(one, ast.ImportFrom) for alias in one.names
    }
    assert names == set(hitl_tui.__all__) - {"__version__"}
    # A __getattr__ that it can see makes it take any name at all for one of ours.
    assert not any(isinstance(one, ast.FunctionDef) and one.name == "__getattr__" for one in tree.body)


def test_every_public_name_is_there() -> None:
    for name in hitl_tui.__all__:
        assert getattr(hitl_tui, name) is not None
    assert dir(hitl_tui) == sorted(hitl_tui.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Chanel'"):
        _ = hitl_tui.Chanel  # type: ignore[attr-defined]


@pytest.mark.slow
def test_no_two_modules_have_a_class_of_one_name() -> None:
    where: dict[str, list[str]] = {}
    for path in Path(hitl_tui.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(path.name)
    assert {name: files for name, files in where.items() if len(files) > 1} == {}
