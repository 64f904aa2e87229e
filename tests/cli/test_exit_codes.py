"""The exit code of each command that runs, decides or changes, in each state that a thread can be in.

0 done, 1 failed or ended by hand, 2 wrong usage, 3 waits for a human, 4 conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.homes import HomeWith
from tests.support.spec import spec

pytestmark = spec("9")

GRAPHS = """
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui import Limits

def write(state):
    if state["fail"]:
        raise RuntimeError("boom")
    return {"n": state["n"] + 1}

def line():
    graph = StateGraph({"n": Channel(0), "fail": Channel(False)}).add_node("write", write)
    graph.add_node("check", lambda state: {}).add_edge(START, "write").add_edge("write", "check")
    return graph.add_conditional_edge("check", lambda s: s["n"] < 3, {"true": "write", "false": END})

whole = line()

def limited(checkpointer):
    return line().compile(checkpointer=checkpointer, limits=Limits(max_iterations=1))

def stops(checkpointer):
    return line().compile(checkpointer=checkpointer, interrupt_after=["check"])
"""

State = Callable[[App, str], object]


def started(graph: str, code: int, *more: str) -> State:
    return lambda app, file: app.expect(code, "run", f"{file}:{graph}", "--headless", "--thread", "t", *more)


def cancelled(app: App, file: str) -> None:
    PAUSED(app, file)
    app.expect(0, "cancel", "t")


PAUSED = started("whole", 3, "--break", "check")
STATES: dict[str, State] = {
    "nothing": lambda app, file: app.expect(0, "run", "counter", "--headless", "--thread", "other"),
    "done": started("whole", 0),
    "failed": started("whole", 1, "--input", "fail=true"),
    "paused": PAUSED,
    "limited": started("limited", 3),
    "stopped": started("stops", 3),
    "asking": lambda app, _: app.expect(
        3, "run", "review", "--headless", "--thread", "t", "--input", "task=x"
    ),
    "cancelled": cancelled,
    "booked": lambda app, _: app.expect(
        3, "run", "booking", "--headless", "--thread", "t", "--input", "city=Lisbon"
    ),
    "risky": lambda app, _: app.expect(3, "run", "webpage", "--headless", "--thread", "t"),
}

TABLE = """
step t              | nothing 2, done 0, failed 1, paused 0, limited 3, stopped 0, asking 3, cancelled 1
resume t --headless | nothing 2, done 0, failed 1, paused 0, limited 3, stopped 3, asking 3, cancelled 1
pause t             | nothing 2, done 0, failed 0, paused 0, limited 0, stopped 0, asking 0, cancelled 0
cancel t            | nothing 2, done 2, failed 0, paused 0, limited 0, stopped 0, asking 0, cancelled 2
approve t           | nothing 2, done 2, failed 2, paused 2, limited 2, stopped 2, asking 0, risky 2, booked 2
approve t --run     | done 2, asking 0, risky 2
approve t --yes     | risky 0
revise t --note x   | nothing 2, done 2, paused 2, stopped 2, asking 0, booked 2
revise t --note x --run      | asking 3
answer t zz yes --step 1     | nothing 2, done 4, failed 4, paused 4, asking 4
approve t --step 1           | asking 4, done 4, paused 2
revise t --note x --step 1   | asking 4, done 4
update-state t n=2  | nothing 2, done 0, failed 0, paused 0, limited 0, stopped 0, asking 2, cancelled 0
update-state t n=2 --as-node write       | done 0, failed 0, paused 0, cancelled 0
update-state t n=2 --as-node zz          | done 2, paused 2
update-state t n=2 --expected-step 99    | done 4, failed 4, paused 4, limited 4, stopped 4, cancelled 4
extend t max_iterations=60   | nothing 2, done 0, paused 0, limited 0, stopped 0
extend t max_iterations=-1   | limited 2
fork t u            | nothing 2, done 0, failed 0, paused 0, limited 0, stopped 0, asking 0, cancelled 0
fork t@9 u          | failed 2, paused 2
fork t t            | done 2
rollback t          | nothing 2, done 0, booked 2
rollback t --dry-run         | nothing 2, done 0, booked 0
rollback t --yes    | done 0, failed 0, paused 0, cancelled 0, booked 0
declassify t page --reason r | nothing 2, done 2, risky 0
declassify t reader --reason r | risky 2
diff t@0 t          | nothing 2, done 0, asking 0
diff t@0 t@99       | done 2
diff t zz           | done 2
export t            | nothing 2, done 0, asking 0
import x.jsonl      | done 2
verify t --strict   | nothing 2, done 0, failed 0, asking 0, booked 0
replay t            | nothing 2, done 0, failed 0, asking 0, booked 0
"""


def rows() -> list[tuple[str, str, int]]:
    found = []
    for line in TABLE.strip().splitlines():
        command, _, outcomes = line.partition("|")
        for outcome in outcomes.split(","):
            state, code = outcome.split()
            found.append((command.strip(), state, int(code)))
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: ", ".join(map(str, row)))
def test_a_command_on_a_thread(
    app: App, home_with: HomeWith, tmp_path_factory: pytest.TempPathFactory, row: tuple[str, str, int]
) -> None:
    command, state, code = row
    file = tmp_path_factory.getbasetemp() / "exit codes" / "graphs.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(GRAPHS)
    home_with(("exit codes", state), lambda: STATES[state](app, str(file)))
    plain = command.startswith("export")  # it writes the thread itself
    done = app.expect(code, *command.split(), *([] if plain else ["--json"]))
    if not plain:
        assert done.document.get("exit_code", code) == code
    assert bool(done.err) or code != 2, "wrong usage is explained"


def test_a_thread_that_is_there_already_is_not_imported_over(app: App, tmp_path: Path) -> None:
    app.expect(0, "run", "counter", "--headless", "--thread", "t")
    file = str(tmp_path / "t.jsonl")
    app.expect(0, "export", "t", file)
    assert "there is a thread 't' already" in app.expect(2, "import", file).err
    app.expect(2, "export", "t", file)
    app.expect(0, "import", file, "--thread", "u")


@pytest.mark.parametrize("command", ["run counter --headless", "demo --plain"])
def test_an_empty_name_as_of_an_unset_variable_names_no_thread(app: App, command: str) -> None:
    assert "1 to 200 characters" in app.expect(2, *command.split(), "--thread", "").err


@pytest.mark.slow
def test_a_thread_is_not_run_with_a_graph_that_lacks_its_place(app: App, tmp_path: Path) -> None:
    file = tmp_path / "graphs.py"
    file.write_text(GRAPHS)
    PAUSED(app, str(file))
    before = app.expect(0, "log", "t", "--json").document
    done = app.expect(2, "run", "counter", "--headless", "--thread", "t", "--json")
    assert "is at node 'check', which the graph 'counter' does not have" in done.document["message"]
    assert "the graph was called 'graph', now it is 'counter'" in done.err
    assert app.expect(0, "log", "t", "--json").document == before
