"""Commands that only read: threads, their steps and logs, graphs, and the app itself."""

from __future__ import annotations

import json
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.config import config_path, user_themes
from tests.engine.audit.rich import HELD, opened
from tests.engine.audit.test_refused import runner
from tests.support.commands import App
from tests.support.places import SAMPLES
from tests.support.program import call


def test_threads_in_words_and_json(review: App) -> None:
    assert "r       -       review  waiting (approval)  2" in review.expect(0, "threads").out
    one = review.expect(0, "threads", "--json").document["threads"][0]
    assert (one["thread"], one["status"], one["step"]) == ("r", "waiting", 2)
    assert one["updated_at"].endswith("Z")
    assert review.expect(0, "threads", "nothing", "--json").document["threads"] == []


def test_of_all_threads_those_that_wait_for_a_human(review: App) -> None:
    review.expect(0, "run", "counter", "--headless", "--input", "limit=1", "--thread", "done")
    assert "done" in review.expect(0, "threads").out
    (only,) = review.expect(0, "threads", "--waiting").out.splitlines()[1:]
    assert "  r       review  " in only
    assert (
        review.expect(0, "threads", "done", "--waiting").err == "no thread that matches waits for a human\n"
    )


def test_threads_say_that_there_are_more(review: App) -> None:
    review.expect(0, "fork", "r@1", "b")
    some = review.expect(0, "threads", "--limit", "1")
    assert some.err == "there are more than 1: name a part of one, or give --limit\n"
    assert "fork of r@1" in some.out
    assert review.expect(0, "threads", "--limit", "1", "--json").document["more"] is True
    assert review.expect(0, "threads", "--limit", "2", "--json").document["more"] is False


def test_before_the_first_thread_the_list_is_empty_and_says_how_to_make_one(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = app.expect(0, "threads")
    assert "no thread yet in sqlite:///" in done.err
    assert "`hitl-tui demo` makes one" in done.err
    assert app.expect(0, "threads", "--json").document["threads"] == []
    monkeypatch.setenv("HITL_TUI_STORE", "mine.db")
    assert "no thread yet in mine.db" in app.expect(0, "threads").err


def test_a_store_asked_for_by_name_must_be_there(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    done = app.expect(2, "threads", "--store", "none.db", "--json")
    error = done.document
    assert (error["title"], error["hint"]) == ("No such store", "check --store")
    assert "`hitl-tui demo` makes it" in app.expect(2, "show", "x").err
    monkeypatch.setenv("HITL_TUI_STORE", "mine.db")
    assert "HITL_TUI_STORE names it" in app.expect(2, "show", "x").err
    assert "there is no store of the kind" in app.expect(2, "show", "x", "--store", "mysql://x").err
    assert "WRONG  store" in app.expect(1, "doctor", "--store", "mysql://x").out
    assert "none yet" in app("doctor").out


def test_the_ledger_shows_letters_of_all_languages_as_they_are(app: App, tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text(
        "from hitl_tui import END, START, Channel, StateGraph\n"
        "def ask(state, config):\n"
        "    asked = {'kind': 'ask', 'title': 'go?', 'payload': {'about': 'naïve “図”'}}\n"
        "    return {'n': config.interrupt(asked)}\n"
        "graph = StateGraph({'n': Channel('')}).add_node('ask', ask)\n"
        "graph.add_edge(START, 'ask').add_edge('ask', END)\n",
        "utf-8",
    )
    app.expect(3, "run", str(tmp_path / "ask.py"), "--headless", "--thread", "t")
    assert 'payload: {"about": "naïve “図”"}' in app.expect(0, "log", "t").out


def test_show_is_the_newest_step_or_any_other(review: App) -> None:
    assert "channels at step 2:" in review.expect(0, "show", "r").out
    assert "channels at step 0 (the newest is 2):" in review.expect(0, "show", "r@0").out
    assert review.expect(0, "show", "r@0", "--json").document["state"]["draft"] == ""
    (said,) = review.expect(0, "show", "r@1", "--json").document["streamed"]
    shown = review.expect(0, "show", "r@1").out
    assert said["text"]
    assert "It wrote:" in shown
    assert all(f"  | {line}" in shown for line in said["text"].rstrip("\n").split("\n"))
    assert "It wrote:" not in review.expect(0, "show", "r@0").out
    assert review.expect(0, "show", "r", "--channel", "task").out == "Hills\n"
    assert "did you mean 'task'?" in review.expect(2, "show", "r", "--channel", "tusk").err


def test_log_has_steps_updates_and_decisions(review: App) -> None:
    review.expect(0, "approve", "r", "--note", "fine", "--run")
    words = review.expect(0, "log", "r").out
    assert words.index("Step 0 by input") < words.index("Step 1 by write") < words.index("Decisions:")
    assert "decision approve" in words
    asked, answered = re.split(r"\n3\. ", words.partition("Decisions:\n")[2])
    assert re.match(
        r"2\. \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: request at step 2 by the graph, [0-9a-f]{12}\n", asked
    )
    assert "  | Is this draft good enough?\n  | node: check_approval\n" in asked
    assert re.search(r"UTC: answer at step 2 by tester \([^@ ]+@[^) ]+\), ", answered)
    assert answered.endswith("\n  | fine\n  | answer: approve\n")
    log = review.expect(0, "log", "r", "--json").document
    assert [one["step"] for one in log["checkpoints"]] == [0, 1, 2, 3]
    update = next(one for one in log["checkpoints"][1]["updates"] if one["channel"] == "draft")
    assert (update["reducer"], update["before"], update["changed"]) == ("overwrite", "", True)
    assert [one["decision"] for one in log["decisions"]][:2] == ["request", "answer"]
    page = review.expect(0, "log", "r", "--limit", "1", "--before", "2", "--json").document
    assert [one["step"] for one in page["checkpoints"]] == [1]
    assert "(steps 0 to 0 are older" in review.expect(0, "log", "r", "--limit", "1", "--before", "2").out


def test_a_long_decision_is_cut_in_the_log_with_the_way_to_see_it_whole(review: App) -> None:
    review.expect(0, "revise", "r", "--note", "\n".join(f"line {n}" for n in range(30)))
    words = review.expect(0, "log", "r").out
    assert "  | line 9\n  | (more: --json has all of it)" in words
    assert "channel's number" not in words
    assert "line 29" in review.expect(0, "log", "r", "--json").out


def test_diff_of_steps_and_forks(review: App) -> None:
    review.expect(0, "fork", "r", "b", "draft=Other words")
    words = review.expect(0, "diff", "r", "b").out
    assert words.startswith("--- r@2\n+++ b@3\ndraft: changed\n")
    assert "  + Other words" in words
    rows = review.expect(0, "diff", "r@0", "r@1", "--json").document
    assert rows["equal"] is False
    assert {one["channel"]: one["change"] for one in rows["channels"]}["draft"] == "changed"
    assert "no difference" in review.expect(0, "diff", "r@1", "r@2").out


def test_blame_names_the_last_writer_of_each_part(review: App, tmp_path: Path) -> None:
    review.expect(0, "update-state", "r", "draft=one\ntwo", "--as", "ann")
    review.expect(0, "update-state", "r", "draft=one\nthree", "--as", "ben")
    lines = review.expect(0, "blame", "r", "draft", "--json").document["lines"]
    assert [(one["who"], one["text"]) for one in lines] == [("ann", "one"), ("ben", "three")]
    assert "step 4  ben  | three" in review.expect(0, "blame", "r", "draft").out
    assert "there is no channel 'drift'" in review.expect(2, "blame", "r", "drift").err
    assert "there is nothing at 'x.y'" in review.expect(2, "blame", "r", "draft.x.y").err


def test_blame_follows_a_path(app: App) -> None:
    app.expect(0, "run", "counter", "--headless", "--input", "limit=2", "--thread", "c")
    lines = app.expect(0, "blame", "c", "log.1", "--json").document["lines"]
    assert [(one["step"], one["text"]) for one in lines] == [(2, "counted to 2")]
    assert app.expect(0, "blame", "c", "log[1]", "--json").document["lines"] == lines


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("text", "increment -> END  when done"),
        ("mermaid", "flowchart TD"),
        ("dot", 'digraph "counter" {'),
        ("json", '"kind":"graph"'),
    ],
)
def test_a_graph_in_every_format(app: App, form: str, words: str) -> None:
    assert words in app.expect(0, "graph", "counter", "--format", form).out


def test_what_a_graph_is_made_of_is_shown_too(app: App) -> None:
    desk = str(SAMPLES / "desk.py")
    assert "graph editor" in app.expect(0, "graph", desk, "--format", "svg").out
    app.expect(3, "run", desk, "--thread", "d", "--headless")
    for form, words in [("svg", "▶ draft"), ("dot", "draft ×1"), ("text", "draft  ran 1 time")]:
        assert words not in app.expect(0, "graph", desk, "--thread", "d", "--format", form).out, form
        assert words in app.expect(0, "graph", desk, "--thread", "d", "--format", form, "--expand").out, form
    (inner, _) = app.expect(0, "graph", desk, "--json").document["nodes"]
    assert [node["name"] for node in inner["inside"]["nodes"]] == ["draft"]
    assert {"source": "START", "target": "draft", "label": ""} in inner["inside"]["edges"]


def test_a_file_without_a_graph_is_refused(app: App) -> None:
    assert "doesn't name a graph" in app.expect(2, "graph", "no").err
    assert "name one" in app.expect(2, "graph").err


def test_a_thread_travels_through_a_file(review: App, tmp_path: Path) -> None:
    file, other = tmp_path / "r.jsonl", f"files:{tmp_path / 'other'}"
    assert review.expect(0, "export", "r", str(file), "--json").document["lines"] > 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "already" in review.expect(2, "export", "r", str(file)).err
    review.expect(0, "export", "r", str(file), "--force")
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
    assert review.expect(0, "import", str(file), "--store", other, "--json").document["thread"] == "r"
    taken = review.expect(2, "import", str(file), "--store", other)
    assert taken.err.endswith("there is a thread 'r' already\n  give it another name with --thread ID\n")
    review.expect(0, "import", str(file), "--store", other, "--thread", "again")
    assert review.expect(0, "verify", "again", "--store", other, "--json").document["ok"] is True
    assert "imported" in review.expect(2, "approve", "r", "--run", "--store", other).err
    review.expect(0, "approve", "r", "--run", "--store", other, "--graph", "review")


def test_an_export_to_a_pipe_and_files_that_are_none(review: App, tmp_path: Path) -> None:
    lines = review.expect(0, "export", "r").out.splitlines()
    assert json.loads(lines[0])["format"] == "hitl-tui thread"
    (tmp_path / "bad").write_text("nothing\n")
    assert "line 1" in review.expect(2, "import", str(tmp_path / "bad")).err
    assert "can't be read" in review.expect(2, "import", str(tmp_path / "none")).err
    (tmp_path / "cut").write_text("\n".join(lines[:-1]) + "\n")
    assert "damaged" in review.expect(1, "import", str(tmp_path / "cut"), "--thread", "new").err
    assert review.expect(0, "threads", "new", "--json").document["threads"] == []


def test_verify_says_ok_and_finds_what_was_changed(review: App, tmp_path: Path) -> None:
    assert review.expect(0, "verify", "r").out.startswith("ok: ")
    review.expect(0, "verify", "r", "--strict")
    store = f"files:{tmp_path / 'store'}"
    review.expect(0, "run", "counter", "--headless", "--thread", "c", "--store", store)
    step = next(
        path for path in sorted((tmp_path / "store").rglob("*.json")) if "counted to 2" in path.read_text()
    )
    step.write_text(step.read_text().replace("counted to 2", "counted to 9"))
    done = review.expect(1, "verify", "c", "--store", store)
    assert "value: " in done.out
    found = review.expect(1, "verify", "c", "--store", store, "--json").document
    assert found["ok"] is False
    assert found["mismatches"]


def test_themes_keys_and_config(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_REVIEWER", "ann")
    assert "* dark" in " ".join(app.expect(0, "themes").out.split())
    rows = {one["name"]: one for one in app.expect(0, "themes", "--json").document["themes"]}
    assert (rows["light"]["in_use"], rows["light"]["dark"], rows["dark"]["in_use"]) == (False, False, True)
    assert "run.step" in app.expect(0, "keys").out
    keys = {one["id"]: one["keys"] for one in app.expect(0, "keys", "--json").document["keys"]}
    assert (keys["run.step"], keys["app.palette"]) == (["s", "f10"], ["ctrl+p"])
    rows = {
        one["name"]: one for one in app.expect(0, "config", "--json", "--theme", "light").document["config"]
    }
    assert (rows["reviewer"]["value"], rows["reviewer"]["origin"]) == ("ann", "HITL_TUI_REVIEWER")
    assert rows["theme"]["origin"] == "flag"
    assert ["theme", "dark", "default"] in [line.split() for line in app.expect(0, "config").out.splitlines()]
    assert "HITL_TUI_REVIEWER" in app.expect(0, "config").out


def test_wrong_keys_and_themes_are_reported_with_their_place(app: App) -> None:
    config_path().parent.mkdir(parents=True)
    config_path().write_text('[keys]\n"run.step" = "Z"\n"run.stop" = "z"\n')
    user_themes().mkdir()
    (user_themes() / "mine.toml").write_text('bse = "dark"\n')
    done = app.expect(2, "keys", "--json")
    rows = {one["id"]: one for one in done.document["keys"]}
    assert (rows["run.step"]["keys"], rows["run.step"]["configured"]) == (["Z"], True)
    assert f"{config_path()}:3: there is no action 'run.stop'" in done.err
    settings = config_path().read_text()
    config_path().write_text(f'theme = "prsenter"\n{settings}')
    assert f"{config_path()}:1: theme: there is no theme 'prsenter'" in app.expect(2, "themes").err
    config_path().write_text(settings)
    done = app.expect(2, "themes")
    assert f"{user_themes() / 'mine.toml'}:1" in done.err
    assert "! mine" in " ".join(done.out.split())
    assert "keys" in [
        one["about"] for one in app.expect(1, "doctor", "--json").document["doctor"] if not one["ok"]
    ]


def test_a_broken_setting_is_wrong_usage(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_API_BASE", "nowhere")
    done = app.expect(2, "config", "--json")
    assert done.document["kind"] == "error"
    assert "HITL_TUI_API_BASE" in done.err


def test_doctor_reports_a_forged_lease(app: App, tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    url = f"sqlite:///{file}"
    with closing(opened(file)) as store:
        runner(store).invoke({}, thread_id="t")
        store.acquire("t", HELD, 0)
    assert "WRONG" not in app("doctor", "--store", url).out
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("UPDATE lease SET expires_at = ?", ((1 << 63) - 1,))
    rows = app.expect(1, "doctor", "--store", url, "--json").document["doctor"]
    (wrong,) = (row for row in rows if not row["ok"])
    assert wrong["about"] == "lease"
    assert (
        "thread t: hal on host afar, process 4711 claims to run it for longer than is possible"
        in wrong["value"]
    )


def test_doctor_says_whether_keys_are_set_but_never_their_values(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    done = app.expect(0, "doctor", "--json")
    rows = {one["about"]: one["value"] for one in done.document["doctor"]}
    assert rows["OPENAI_API_KEY"] == "set"
    assert rows["store"].endswith("none yet, it is made when it is needed")
    assert "sk-very-secret" not in done.out + app.expect(0, "doctor").out


def test_doctor_reports_a_file_that_is_not_a_store(app: App, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_text("this is no database" * 100)
    done = app.expect(1, "doctor", "--store", str(tmp_path / "junk.db"))
    assert "WRONG" in done.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(app: App, shell: str) -> None:
    assert "_HITL_TUI_COMPLETE" in app.expect(0, "completion", shell).out
    assert app("completion", "tcsh").code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [("hitl-tui upd", "update-state"), ("hitl-tui show r", "r"), ("hitl-tui resume --he", "--headless")],
)
def test_the_shell_completes_commands_threads_and_options(
    review: App, monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    review.expect(0, "fork", "r", "with blank")
    monkeypatch.setenv("_HITL_TUI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    done = call()
    assert f"plain,{expected}" in done.stdout.splitlines()
    assert "blank" not in done.stdout


@pytest.mark.slow
def test_threads_are_completed_from_the_store_that_was_typed(
    review: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = str(tmp_path / "elsewhere.db")
    review.expect(
        0, "run", "counter", "--headless", "--input", "limit=1", "--thread", "far", "--store", elsewhere
    )
    monkeypatch.setenv("_HITL_TUI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"hitl-tui show --store {elsewhere} ")
    monkeypatch.setenv("COMP_CWORD", "4")
    done = call()
    assert done.stdout.splitlines() == ["plain,far"]


def test_config_shows_each_of_your_keys_with_its_place(app: App) -> None:
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[keys]\n"run.step" = "Z"\n"change.extend" = ""\n')
    lines = [line.split() for line in app.expect(0, "config").out.splitlines()]
    assert ["keys.run.step", "Z", f"{path}:2"] in lines
    assert ["keys.change.extend", "-", f"{path}:3"] in lines
    rows = {row["name"]: row["value"] for row in app.expect(0, "config", "--json").document["config"]}
    assert rows["keys"] == {"run.step": "Z", "change.extend": ""}


def test_cost_is_listed_by_agent_node_and_step(review: App) -> None:
    words = review.expect(0, "cost", "r").out
    assert [line.split()[0] for line in words.splitlines() if line] == [
        "By", "agent", "writer", "all", "By", "node", "write", "check_approval", "By", "step", "1", "2",
    ]  # fmt: skip
    costs = review.expect(0, "cost", "r", "--json").document
    (line,) = costs["agents"]
    assert (line["agent"], line["calls"]) == ("writer", 1)
    assert [(one["node"], one["runs"], one["calls"]) for one in costs["nodes"]] == [
        ("write", 1, 1), ("check_approval", 1, 0),
    ]  # fmt: skip
    assert costs["total"]["cost"] == line["cost"] == costs["steps"][0]["cost"]
    review.expect(2, "cost", "nobody")


def test_a_graph_shows_the_path_that_a_thread_took(review: App) -> None:
    text = review.expect(0, "graph", "review", "--thread", "r").out
    assert review.expect(0, "graph", "--thread", "r").out == text
    assert "write  ran 1 time" in text
    assert "check_approval  ran 1 time, the thread is here" in text
    svg = review.expect(0, "graph", "review", "--thread", "r", "--format", "svg").out
    assert svg.startswith("<svg ")
    assert 'class="node current"' in svg
    assert (
        "class n2 current" in review.expect(0, "graph", "review", "--thread", "r", "--format", "mermaid").out
    )
    assert "no thread 'nope'" in review.expect(2, "graph", "review", "--thread", "nope").err
