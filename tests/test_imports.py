"""What each package may load, seen in a fresh process: heavy modules come late (DESIGN, principle 6)."""

from __future__ import annotations

import ast
import json
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


def loaded_after(code: str) -> set[str]:
    """Top-level modules that a fresh Python has loaded after running `code`."""
    program = (
        f"import json, sys\n{code}\nprint(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True, timeout=150
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


def modules_of(package: str) -> list[str]:
    found = import_module(package)
    return [package, *(info.name for info in pkgutil.walk_packages(found.__path__, f"{package}."))]


@pytest.mark.parametrize(
    "package", ["engine", "stores", "agents", "workflows", "loading", "drivers", "view", "plain", "cli"]
)
def test_only_ui_loads_the_screen_and_nobody_loads_models(package: str) -> None:
    names = modules_of(f"hitl_tui.{package}")
    assert not HEAVY & loaded_after(f"import {', '.join(names)}")


def test_ui_loads_no_models() -> None:
    names = modules_of("hitl_tui.ui")
    assert "litellm" not in loaded_after(f"import {', '.join(names)}")


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


def test_no_module_imports_one_that_imports_it() -> None:
    assert list(TopologicalSorter(imports_inside("hitl_tui", types=False)).static_order())


def test_not_even_types_go_in_a_circle_in_ui_but_among_the_parts_of_the_run_screen() -> None:
    def family(name: str) -> str:
        return "hitl_tui.ui.screens.run" if name.startswith("hitl_tui.ui.screens.run_") else name

    graph: dict[str, set[str]] = {}
    for name, found in imports_inside("hitl_tui.ui", types=True).items():
        graph.setdefault(family(name), set()).update({family(other) for other in found} - {family(name)})
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("arguments", ["--help", "--version", "demo --help", "run --help", "threads --help"])
def test_help_loads_nothing_heavy(arguments: str) -> None:
    code = f"""
sys.argv = ["hitl-tui", *{arguments.split()!r}]
from hitl_tui.cli.main import main
try:
    main()
except SystemExit as left:
    assert left.code == 0, left.code
"""
    assert not (HEAVY | {"sqlite3", "msgspec", "asyncio", "logging"}) & loaded_after(code)


@pytest.mark.parametrize("arguments", ["threads", "show t --json", "log t", "log t --json"])
def test_looking_loads_no_event_loop_and_no_log_file(arguments: str, tmp_path: Path) -> None:
    place = tmp_path / "runs.db"
    with closing(SQLiteCheckpointer(place)) as store:
        line(store, lambda state: {"log": "one"}).invoke({}, thread_id="t")
    code = f"""
sys.argv = ["hitl-tui", *{arguments.split()!r}, "--store", {str(place)!r}]
from hitl_tui.cli.main import main
try:
    main()
except SystemExit as left:
    assert left.code == 0, left.code
"""
    assert not (HEAVY | {"asyncio", "logging", "platformdirs"}) & loaded_after(code)


def test_importing_the_package_loads_no_library() -> None:
    ours = loaded_after("import hitl_tui") - loaded_after("pass")
    assert ours - set(sys.stdlib_module_names) == {"hitl_tui"}


def test_a_type_checker_sees_the_public_names_and_no_others() -> None:
    tree = ast.parse(Path(hitl_tui.__file__).read_text(encoding="utf-8"))
    told = next(
        one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"
    )
    names = {alias.name for one in told.body if isinstance(one, ast.ImportFrom) for alias in one.names}
    assert names == set(hitl_tui.__all__) - {"__version__"}
    # A __getattr__ that it can see makes it take any name at all for one of ours.
    assert not any(isinstance(one, ast.FunctionDef) and one.name == "__getattr__" for one in tree.body)


def test_every_public_name_is_there() -> None:
    for name in hitl_tui.__all__:
        assert getattr(hitl_tui, name) is not None
    assert dir(hitl_tui) == sorted(hitl_tui.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Chanel'"):
        _ = hitl_tui.Chanel  # type: ignore[attr-defined]


def test_no_two_modules_have_a_class_of_one_name() -> None:
    where: dict[str, list[str]] = {}
    for path in Path(hitl_tui.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(path.name)
    assert {name: files for name, files in where.items() if len(files) > 1} == {}
