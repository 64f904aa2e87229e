"""`present`: checking a script, and notes that follow a show of another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hitl_tui.config import shows_folder
from hitl_tui.loading.graphs import scripts_folder
from hitl_tui.view.show_state import ShowFile, ShowState, own_process_started
from tests.support.commands import App

SAMPLE = scripts_folder() / "closures.toml"


def state(**other: object) -> ShowState:
    fields: dict[str, object] = {
        "script": str(SAMPLE.resolve()), "pid": os.getpid(), "process_started": own_process_started(),
        "store": "x", "thread": "kitchen-1", "stop": 2, "going": False, "held": False, "pace": 1.5,
        "began": 0,
    }  # fmt: skip
    return ShowState(**{**fields, **other})  # type: ignore[arg-type]


def test_the_bundled_script_can_be_presented(app: App) -> None:
    assert "6 stops, nothing is wrong" in app.expect(0, "present", "closures", "--check").out


def test_what_a_script_says_of_its_graph_is_checked_with_its_line(app: App, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        '[show]\ngraph = "advisor"\n[inputs]\ntsk = "x"\n'
        '[[stops]]\nafter = "wrker"\nchannel = "drft"\n[[stops]]\nwhen = "len(messages) >"\n'
    )
    stderr = app.expect(2, "present", str(file), "--check").err
    for words in (
        "line 4, [inputs.tsk]: there is no input 'tsk'",
        "line 6, [[stops]] after: there is no node 'wrker', did you mean 'worker'?",
        "line 7, [[stops]] channel: there is no channel 'drft'",
        "line 9, [[stops]] when: at column",
    ):
        assert words in stderr


def test_a_missing_graph_is_reported_at_the_line_that_names_it(app: App, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[show]\ngraph = "gone.toml"\n')
    assert "line 2, [show] graph: there is no file" in app.expect(2, "present", str(file), "--check").err


@pytest.mark.parametrize("named", [(), (str(SAMPLE),), ("closures",)])
def test_notes_say_when_no_presentation_is_running(app: App, named: tuple[str, ...]) -> None:
    assert "The presentation is not running" in app.expect(2, "present", *named, "--notes").err


def test_a_presentation_whose_process_died_is_not_running(app: App) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    ShowFile(shows_folder(), SAMPLE).write(state(pid=int(ended.stdout)))
    assert "The presentation is not running" in app.expect(2, "present", "closures", "--notes").err


@pytest.mark.parametrize("named", [(), ("closures",), ("kitchen-1",)])
def test_notes_show_the_stop_its_notes_and_the_next_stop_until_the_end(
    app: App, named: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ShowFile(shows_folder(), SAMPLE)
    file.write(state())
    moves = iter([lambda: file.write(state(stop=3)), file.end])
    monkeypatch.setattr("hitl_tui.cli.present._pause", lambda: next(moves)())  # noqa: PLW0108
    output = app.expect(0, "present", *named, "--notes").out
    assert "stop 3 of 6 · kitchen-1 · pace 1.5×" in output
    assert "revise — “Shorter, please, and keep the jar.”" in output
    assert "stop 4 of 6" in output
    assert "Show the struck-through and the underlined words." in output
    assert output.rstrip().endswith("the presentation is over")


def test_the_notes_of_the_presentation_come_before_those_of_its_first_stop(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ShowFile(shows_folder(), SAMPLE)
    file.write(state(stop=0))
    moves = iter([lambda: file.write(state(stop=1)), file.end])
    monkeypatch.setattr("hitl_tui.cli.present._pause", lambda: next(moves)())  # noqa: PLW0108
    first, _, second = app.expect(0, "present", "closures", "--notes").out.partition("stop 2 of 6")
    assert first.index("Say who you are") < first.index("Point at the graph") < first.index("The first draft")
    assert "Say who you are" not in second


GRAPH = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({"n": Channel(0)}, name="sent").add_node("a", lambda s: {}).add_edge(START, "a")
graph = graph.add_edge("a", END)
"""
WAYS = {
    "file": ("sent.py", GRAPH), "module": ("sent:graph", GRAPH),
    "toml": ("sent.toml", '[graph]\nname = "x"\nstart = "a"\n[nodes.a]\nrun = "sent.py:graph"\n'),
}  # fmt: skip


@pytest.fixture(params=WAYS)
def sent(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A show that somebody sent, with code beside it that leaves a mark where it runs."""
    named, _ = WAYS[request.param]
    (tmp_path / "sent.py").write_text(GRAPH)
    (tmp_path / "sent.toml").write_text(WAYS["toml"][1])
    (tmp_path / "show.toml").write_text(f'[show]\ngraph = "{named}"\n')
    return tmp_path / "show.toml"


@pytest.mark.parametrize("store", [(), ("--store", "memory:")])
def test_the_code_of_a_received_presentation_does_not_run_without_consent(
    app: App, sent: Path, store: tuple[str, ...]
) -> None:
    refusal = app.expect(2, "present", str(sent), "--check", *store).err
    assert "The graph is not trusted: you have not run this graph from this script yet" in refusal
    assert f"script: {sent}" in refusal
    assert "--trust" in refusal
    assert not sent.with_name("ran").exists()


def test_a_trusted_presentation_stays_trusted_until_its_files_change(app: App, tmp_path: Path) -> None:
    show, graph = tmp_path / "show.toml", tmp_path / "sent.py"
    graph.write_text(GRAPH)
    show.write_text('[show]\ngraph = "sent.py"\n')
    assert "nothing is wrong" in app.expect(0, "present", str(show), "--check", "--trust").out
    assert "nothing is wrong" in app.expect(0, "present", str(show), "--check").out
    graph.write_text(GRAPH + "# changed\n")
    assert "came with a script that was made elsewhere" in app.expect(2, "present", str(show), "--check").err


def test_a_presentation_needs_a_terminal(app: App) -> None:
    assert "a presentation needs a terminal" in app.expect(2, "present", "closures").err
