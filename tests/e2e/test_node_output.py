"""What a node, its libraries and its processes write never reaches the terminal raw, whatever the mode."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.hostile import unexpected
from tests.support.places import ROOT
from tests.support.program import APP, call
from tests.support.terminal import Terminal
from tests.support.writing_flow import STEER, WAYS

FLOW = "from hitl_tui import END, START, Channel, StateGraph\nimport os, subprocess, sys, threading, time\n"
TAIL = (
    "\ngraph = StateGraph({'draft': Channel('')}).add_node('write', write)"
    "\ngraph.add_edge(START, 'write').add_edge('write', END)\n"
)
Write = Callable[[str], str]
STEERED = re.compile(rb"\x1b\[2J\x1b\]52|\x1bc|\x9b31m|\x1b\]52")
SHOWN = "␛[2J␛]52;c;aGFja2Vk␇⟨U+009B⟩31m␛c"


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text("from tests.support.writing_flow import graph\n")
    return "flow.py"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def write_file(body: str) -> str:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        (tmp_path / "flow.py").write_text(
            f"{FLOW}def write(state):\n{lines}\n    return {{'draft': 'x'}}{TAIL}"
        )
        return "flow.py"

    return write_file


def shown_lines(text: str) -> list[str]:
    return [line for line in text.replace("\r", "").splitlines() if STEER in line or SHOWN in line]


def run_in_terminal(arguments: Sequence[str], code: int = 0) -> bytes:
    with Terminal([*APP, *arguments], size=(120, 60)) as terminal:
        assert terminal.wait_exit() == code
        return bytes(terminal.raw)


def test_headless_output_of_nodes_is_behind_the_bar(flow: str) -> None:
    raw = run_in_terminal(["run", flow, "--headless"])
    assert not STEERED.search(raw)
    assert not unexpected(raw)
    shown = shown_lines(raw.decode())
    assert all(line.startswith("  | ") for line in shown)
    for way in (*WAYS, "built", "built-fd"):
        assert [line for line in shown if f"{way}-{SHOWN}-end" in line], way
    assert "  | raw-�31m-�-end" in raw.decode()
    assert f"  | unended-{SHOWN}" in raw.decode()
    assert "write writes:" in raw.decode()


def test_json_output_has_only_documents_and_node_output_in_events(flow: str) -> None:
    done = call("run", flow, "--json")
    assert done.returncode == 0
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    text = "".join(one["text"] for one in documents if one.get("event") == "text")
    for way in WAYS:
        assert f"{way}-{STEER}-end" in text, way
    assert f"unended-{STEER}" in text
    assert all(line.startswith("  | built") for line in done.stderr.splitlines())
    assert not STEERED.search(run_in_terminal(["run", flow, "--json"]))


def test_plain_output_of_nodes_is_behind_the_bar_and_the_prompt_can_be_edited(flow: str) -> None:
    with Terminal([*APP, "run", flow, "--plain"], size=(120, 60)) as terminal:
        terminal.wait_for("Command:")
        terminal.press("x", "backspace", "s", "enter")
        terminal.wait_for("Done at step 1.")
        screen = terminal.text()
        # Readline has what was typed before; the terminal alone would show the keys.
        terminal.press("w", "enter", "up", "up", "enter")
        terminal.wait_for("the run is completed")
        terminal.press("q", "enter")
        assert terminal.wait_exit() == 0
        raw = bytes(terminal.raw)
    assert not STEERED.search(raw)
    shown = [line for line in screen.splitlines() if SHOWN in line]
    assert not [line for line in shown if not line.startswith("  | ")]
    for way in WAYS:
        assert [line for line in shown if f"{way}-{SHOWN}-end" in line], way


def test_on_screen_it_is_the_stream_of_the_node(flow: str) -> None:
    with Terminal([*APP, "run", flow], size=(160, 100)) as terminal:
        terminal.wait_for("◉ input")
        terminal.press("s")
        for way in WAYS:
            terminal.wait_for(f"{way}-␛[2J␛]52")
        terminal.press("q")
        assert terminal.wait_exit() == 0
        raw = bytes(terminal.raw)
    assert not STEERED.search(raw)
    assert not unexpected(raw)


def test_output_of_a_stopped_node_can_not_reach_a_prompt(write: Write) -> None:
    flow = write(
        "def spam():\n    while True:\n        os.write(1, b'\\x1b]52;fd\\x07\\n'); print('\\x1b]52;py')\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=spam, daemon=True).start()"
    )
    with Terminal([*APP, "run", flow, "--plain"], size=(100, 40)) as terminal:
        terminal.wait_for("Command:")
        terminal.press("s", "enter")
        # What the thread writes soon pushes it off the screen.
        terminal.wait_until(lambda: b"Done at step 1." in terminal.raw, "the step's end")
        terminal.wait_until(lambda: terminal.raw.count("␛]52;fd".encode()) > 20, "it to write on")
        terminal.press("q", "enter")
        assert terminal.wait_exit() == 0
        assert not STEERED.search(bytes(terminal.raw))


@pytest.mark.parametrize(
    "way", ["os.write(2, b'x' * 65536)", "subprocess.run(['head', '-c', '65536', '/dev/zero'])"]
)
def test_a_node_that_writes_a_lot_neither_blocks_nor_floods_the_screen(way: str, write: Write) -> None:
    flow = write(f"for _ in range(64):\n    {way}\nprint('all of it')")
    with Terminal([*APP, "run", flow], size=(100, 40)) as terminal:
        terminal.wait_for("◉ input")
        painted = len(terminal.raw)
        terminal.press("s")
        terminal.wait_for("all of it")
        assert len(terminal.raw) - painted < 1_000_000
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_events_of_a_flood_of_prints_are_few_and_none_is_lost(write: Write) -> None:
    done = call("run", write("for at in range(100_000):\n    print(at)"), "--json")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    output = [one["text"] for one in documents if one.get("event") == "text"]
    assert "".join(output) == "".join(f"{at}\n" for at in range(100_000))
    assert [one["event"] for one in documents if "event" in one][-2:] == ["step_committed", "run_ended"]
    assert done.stderr == ""


def test_output_of_branches_is_shown_for_their_branch_or_their_node(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(
        "import os, threading\nfrom hitl_tui import END, START, Channel, StateGraph\n"
        "both = threading.Barrier(2, timeout=30)\n"
        "def work(state, config):\n    both.wait()\n    print('print', config.item)\n"
        "    os.write(2, b'descriptor\\n')\n    both.wait()\n    return {}\n"
        "graph = StateGraph({'items': Channel([1, 2], reducer='overwrite')})\n"
        "graph.add_map('each', over='items', node=work).add_edge(START, 'each').add_edge('each', END)\n"
    )
    done = call("run", "flow.py", "--json", cwd=tmp_path)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    output: dict[str | None, str] = {}
    for one in documents:
        if one.get("event") == "text":
            output[one["path"]] = output.get(one["path"], "") + one["text"]
    whole = output.pop(None)
    assert whole == "descriptor\ndescriptor\n"
    assert sorted(output.values()) == ["print 1\n", "print 2\n"]


def test_output_of_no_node_is_in_the_log_file(write: Write, tmp_path: Path) -> None:
    flow = write("pass")
    path = tmp_path / "flow.py"
    path.write_text(path.read_text() + "print('\\x1b]52;built')\nos.write(2, b'\\x1b]52;built-fd\\n')\n")
    with Terminal([*APP, "run", flow], env={"XDG_STATE_HOME": str(tmp_path / "state")}) as terminal:
        terminal.wait_for("◉ input")
        terminal.press("q")
        terminal.wait_exit()
        assert not STEERED.search(bytes(terminal.raw))
    (log,) = (tmp_path / "state").rglob("hitl-tui.log")
    assert "␛]52;built" in log.read_text()
    assert "␛]52;built-fd" in log.read_text()
