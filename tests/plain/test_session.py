"""A session in lines, typed through a pipe: the same decisions, edits and guards as on screen."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from hitl_tui.config import default_store
from hitl_tui.loading.sources import reopen_graph
from hitl_tui.plain.commands import find_command, plain_commands
from hitl_tui.plain.console import Terminal
from hitl_tui.stores import open_store
from hitl_tui.verbs import verbs
from tests.plain.talker import Talker
from tests.support import reviewed_flow
from tests.support.asking_files import MAPPED
from tests.support.commands import App
from tests.support.places import SAMPLES

LIMITED = """
from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.engine.log.records import Limits
graph = StateGraph({"n": Channel(0)}, name="limited").add_node("a", lambda state: {"n": state["n"] + 1})
ways = {"on": "a", "off": END}
graph = graph.add_edge(START, "a").add_conditional_edge("a", lambda state: "on", ways)
graph = graph.compile(checkpointer=MemoryCheckpointer(), limits=Limits(max_iterations=2))
"""


def test_the_help_has_a_line_for_each_verb_with_its_letter(waiting: Talker) -> None:
    said = waiting("help\nq\n", "resume", "r", "--plain").out
    for entry in verbs().values():
        letter = entry.load().letter
        names = f"{letter}, {entry.name}" if letter else entry.name
        assert f"\n{names}: " in said or f"\n{names} " in said
        assert find_command(entry.name) is not None
        assert letter == "" or find_command(letter) is not None


def test_no_two_commands_share_a_word_or_a_letter() -> None:
    names = [name for row in plain_commands() for name in (row.word, row.letter) if name]
    assert len(names) == len(set(names))
    assert not {"q", "quit", "h", "help"} & set(names)


HANGING = """
import os, signal, time
from hitl_tui import END, START, Channel, StateGraph

def wait_for(file):
    while not os.path.exists(file):
        time.sleep(0.01)

def hang(state):
    wait_for("followed")
    os.kill(os.getpid(), signal.SIGINT)
    wait_for("released")

def fail(state):
    raise ValueError("no price")

graph = StateGraph({"n": Channel(0)}, name="hanging").add_node("hang", hang).add_node("fail", fail)
graph.add_edge(START, "hang").add_edge("hang", "fail").add_edge("fail", END)
"""


@pytest.mark.slow
def test_ctrl_c_says_where_the_node_is_and_where_says_where_one_failed(
    talk: Talker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hanging.py").write_text(HANGING)
    say = Terminal.say

    def said(console: Terminal, *lines: str) -> None:
        say(console, *lines)
        if "Step 1: hang runs." in lines:
            Path("followed").touch()
        if "hang is at:" in lines:
            Path("released").touch()

    monkeypatch.setattr(Terminal, "say", said)
    output = talk("c\nwhere\nc\nwhere\nq\n", "run", "hanging.py", "--plain").out
    running, _, rest = output.partition("None of your code runs in this process.")
    assert "hang is at:" in running
    assert 'wait_for("released")' in running
    assert rest.count("fail failed at:") >= 1
    assert 'raise ValueError("no price")' in rest


@pytest.fixture
def waiting(app: App, talk: Talker) -> Talker:
    """A session on thread `r`, which waits at step 2 for a decision."""
    app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    return talk


def test_a_whole_run_from_its_input_to_its_end(talk: Talker) -> None:
    done = talk("Hills\nc\nd\napprove\nreads well\nq\n", "run", "review", "--thread", "r")
    assert done.code == 0
    assert "What to write (as in: Explain gradient descent):" in done.out
    assert "Step 1 by write" in done.out
    assert "Allowed answers:\n1. approve: approve\n2. revise: send back\n" in done.out
    assert "Decided: your answer is recorded, the thread is at step 3." in done.out
    assert done.out.endswith("Done at step 3.\nCommand: \n")


@pytest.mark.slow
def test_your_decisions_are_listed_with_their_outcome(app: App, waiting: Talker) -> None:
    app.expect(3, "revise", "r", "--note", "shorter", "--run", "--as", "ann")
    output = waiting("l mine\nl yours\nq\n", "resume", "r", "--plain", "--as", "ann").out
    assert re.search(
        r"^(\S+ )?\d\d:\d\d  r, step 2: you sent back “Is this draft good enough\?”", output, re.MULTILINE
    )
    assert "then: write, check_approval; asked: “Is this draft good enough?”" in output
    assert "hitl-tui fork r@2 r-again" in output
    assert "'yours' is not listed" in output
    assert (
        "bob has decided nothing in this thread"
        in waiting("l mine\nq\n", "resume", "r", "--as", "bob", "--plain").out
    )


def test_the_subject_is_shown_in_full(waiting: Talker) -> None:
    done = waiting("d\n\nq\n", "resume", "r", "--plain")
    assert "The text of draft:\n  | Gradient descent minimises a function" in done.out
    assert "It still waits." in done.out
    assert done.code == 3
    assert "Left. Continue with: hitl-tui resume r" in done.out


def test_the_card_says_what_changed_since_the_last_version(app: App, talk: Talker) -> None:
    app.expect(3, "run", reviewed_flow.__file__, "--headless", "--thread", "r")
    done = talk("d\n\nq\n", "resume", "r", "--plain")
    assert "What changed:" in done.out
    assert "[-word120-] {+packed lunch+}" in done.out.replace("\n  | ", " ")
    assert "2 words changed since step 1" in done.out
    first = done.out.index("What changed:")
    assert first < done.out.index("The text of draft:")


def test_a_first_version_shows_no_changes(waiting: Talker) -> None:
    assert "What changed:" not in waiting("d\n\nq\n", "resume", "r", "--plain").out


@pytest.mark.slow
def test_an_answer_by_number_needs_its_words(waiting: Talker) -> None:
    done = waiting("d\n2\n\n2\nName the hill.\ns\nq\n", "resume", "r", "--plain")
    assert "The answer revise needs a comment." in done.out
    assert "Step 4: write runs." in done.out
    assert "“Name the hill.”" in done.out


def test_an_unknown_choice_is_asked_for_again(waiting: Talker) -> None:
    done = waiting("d\n3\naprove\n\nq\n", "resume", "r", "--plain")
    assert "there is no answer 3" in done.out
    assert "did you mean 'approve'?" in done.out
    assert "It still waits." in done.out
    assert done.code == 3


def test_an_edit_is_previewed_and_confirmed(waiting: Talker) -> None:
    typed = "e draft\nOne.\nTwo.\n.\nyes\nclearer\nv draft\nq\n"
    done = waiting(typed, "resume", "r", "--plain", "--as", "ann")
    assert "It would do this:" in done.out
    assert "Then write is next." in done.out
    assert "The question Is this draft good enough? would be about the new step." in done.out
    assert "Stored as step 3." in done.out
    assert "draft:\n  | One.\n  | Two.\n" in done.out


def test_a_refused_edit_gives_the_text_back(waiting: Talker) -> None:
    done = waiting(
        "e approved\nperhaps\n.\ne approved\n3\n.\ne 2\nMine\n.\nno\nq\n", "resume", "r", "--plain"
    )
    assert "this is not JSON: line 1, column 1" in done.out
    assert "Your text was:\n  | perhaps\n" in done.out
    assert "Your text was:\n  | 3\n" in done.out
    assert "Nothing was stored.\nYour text was:\n  | Mine\n" in done.out
    assert "Stored" not in done.out


def test_a_fork_becomes_the_open_thread(waiting: Talker) -> None:
    done = waiting("f @1\ng\nother\n\ns\nt\no r\nq\n", "resume", "r", "--plain")
    assert "Forked 'r' at step 1 as 'other'." in done.out
    assert "other: waiting, step 2, waits for Is this draft good enough?" in done.out
    assert done.out.count("Thread r, graph review.") == 2


def test_cancelling_a_thread_requires_yes(waiting: Talker) -> None:
    done = waiting("x\nno\nx\nyes\nno time\nl\nq\n", "resume", "r", "--plain")
    assert "Nothing was done." in done.out
    assert "Cancelled at step 2: ended by a person." in done.out
    assert done.code == 1


def test_a_disabled_command_says_why(waiting: Talker) -> None:
    done = waiting("s\nz\nv nothing\n\nh\nd\n1\n\nd\nc\nc\nq\n", "resume", "r", "--plain")
    assert "it waits for your decision" in done.out
    assert "There is no command z; help lists the commands.\n" in done.out
    assert "there is no channel 'nothing'" in done.out
    assert "Nothing waits for a decision." in done.out
    assert "the run is completed" in done.out
    assert done.code == 0


@pytest.mark.parametrize("word", ["h", "help", "?"])
def test_help_is_found_by_any_of_its_names(waiting: Talker, word: str) -> None:
    assert "\ns, step: run one node." in waiting(f"{word}\nexit\n", "resume", "r", "--plain").out


def test_input_that_does_not_fit_is_asked_for_again(talk: Talker, app: App, tmp_path: Path) -> None:
    app.expect(0, "new", "counter", str(tmp_path / "c.toml"))
    done = talk("many\n2\nc\nq\n", "run", str(tmp_path / "c.toml"), "--thread", "c")
    assert "Refused: Value does not fit the schema.\n  | channel 'limit': \"many\" is not" in done.out
    assert done.out.count("How far to count") == 2
    assert done.code == 0


def test_leaving_before_it_began_leaves_no_thread(talk: Talker, app: App) -> None:
    done = talk("", "run", "review", "--thread", "r")
    assert done.out.endswith("Quit before it started: there is no thread yet.\n")
    assert "no thread yet" in app.expect(0, "threads").err


def test_leaving_prints_the_command_that_continues(talk: Talker, tmp_path: Path) -> None:
    store = f"files:{tmp_path / 'a store'}"
    done = talk("Hills\nq\n", "run", "review", "--thread", "my thread", "--store", store)
    assert f"Left. Continue with: hitl-tui resume 'my thread' --store '{store}'\n" in done.out
    assert "Left.\n" in talk("Hills\nq\n", "run", "review", "--store", "memory:").out


def test_a_limit_is_raised(talk: Talker, tmp_path: Path) -> None:
    (tmp_path / "limited.py").write_text(LIMITED)
    done = talk("c\nm\n\nm max_turns=1\nm\nmany\n3\nc\nq\n", "run", str(tmp_path / "limited.py"))
    assert done.out.count("Note: 50 % of the iterations are used: 1 of 2.") == 1
    assert "Note: 100 % of the iterations are used: 2 of 2." in done.out
    assert "Waiting at step 2: limit reached: 2 iterations." in done.out
    assert "Nothing was done." in done.out
    assert "extend does not take 'max_turns=1'" in done.out
    assert "'max_iterations=many' is not a limit" in done.out
    assert "Step 3 by a" in done.out
    assert done.code == 3


def test_the_end_of_the_input_leaves(waiting: Talker) -> None:
    done = waiting("", "resume", "r")
    assert done.code == 3
    assert "Left." in done.out


class Late(io.StringIO):
    """Somebody else edits a thread, or cancels it without values, while "too late" is typed."""

    def __init__(self, lines: str, thread: str, **values: object) -> None:
        super().__init__(lines)
        self._thread = thread
        self._values = values

    def readline(self, size: int = -1, /) -> str:
        line = super().readline(size)
        if line == "too late\n":
            store = open_store(default_store())
            info = store.info(self._thread)
            assert info is not None
            runner = reopen_graph(self._thread, info.source, store)
            if self._values:
                runner.update_state(self._thread, self._values)
            else:
                runner.cancel(self._thread)
            store.close()
        return line


def test_a_late_decision_is_reported(waiting: Talker, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Late("d\nrevise\ntoo late\nq\n", "r", draft="Theirs"))
    done = app("resume", "r", "--plain")
    assert "Refused: Answer refused." in done.out
    assert "changed since step 2:" in done.out
    assert "Your comment was:\n  | too late\n" in done.out
    assert "Step 3 by" in done.out


def test_an_edit_that_comes_too_late_shows_what_changed_and_gives_text_and_note_back(
    waiting: Talker, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "e draft\nMine\nall of it\n.\nyes\ntoo late\nq\n"
    monkeypatch.setattr("sys.stdin", Late(typed, "r", draft="Theirs"))
    done = app("resume", "r", "--plain")
    assert "Refused: The thread has moved." in done.out
    assert "changed since step 2:\n  | draft: changed\n" in done.out
    assert "  |   + Theirs\n" in done.out
    assert "Your text was:\n  | Mine\n  | all of it\nYour note was:\n  | too late\n" in done.out
    assert app.expect(0, "show", "r", "--channel", "draft").out.strip() == "Theirs"


def test_text_for_a_thread_that_someone_else_ended_is_given_back(
    waiting: Talker, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Late):
        def readline(self, size: int = -1, /) -> str:
            line = io.StringIO.readline(self, size)
            if line == "too late\n":
                store = open_store(default_store())
                info = store.info("r")
                assert info is not None
                reopen_graph("r", info.source, store).cancel("r")
                store.close()
            return line

    monkeypatch.setattr("sys.stdin", Ended("x\nyes\ntoo late\nq\n", "r"))
    done = app("resume", "r", "--plain")
    assert "Your note was:\n  | too late\n" in done.out


class TestAsking:
    """Requests that want more than a choice."""

    @pytest.fixture
    def order(self, app: App, talk: Talker) -> Talker:
        """A session on thread `o`, whose node asks with a form."""
        app.expect(3, "run", str(SAMPLES / "order.py"), "--headless", "--thread", "o")
        return talk

    @pytest.mark.slow
    def test_a_form_is_a_question_for_each_field_asked_again_until_it_fits(self, order: Talker) -> None:
        fields = "tea\nmany\n2\n\nHill 1\nUlm\n2\n\n"
        done = order(f"d\n{fields}c\nq\n", "resume", "o", "--plain")
        assert "item (2 to 40 characters), required." in done.out
        assert "| amount must be a whole number" in done.out
        assert "| address.street is required" in done.out
        assert "1. none\n2. paper\n3. box\n" in done.out
        assert "value, - leaves it out [none]:" in done.out
        assert "Decided: your answer is recorded, the thread is at step 0." in done.out
        assert "wrapping  paper" in done.out

    @pytest.mark.slow
    def test_a_form_that_comes_too_late_is_given_back(
        self, order: Talker, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        typed = "d\ntea\n2\nHill 1\ntoo late\n\n\nq\n"
        monkeypatch.setattr("sys.stdin", Late(typed, "o"))
        done = app("resume", "o", "--plain")
        assert "Refused: " in done.out
        assert "Your answer was:" in done.out
        assert '"street": "Hill 1"' in done.out

    def test_a_dot_leaves_the_request_waiting(self, order: Talker) -> None:
        done = order("d\ntea\n.\nq\n", "resume", "o", "--plain")
        assert "It still waits." in done.out
        assert done.code == 3

    @pytest.mark.slow
    def test_an_edit_shows_what_changes_before_it_is_sent(self, order: Talker, app: App) -> None:
        fields = "tea\n2\nHill 1\nUlm\n\n\n"
        edited = '{"item": "tea", "amount": 9, "address": {"street": "a", "city": "Bonn"}}'
        done = order(f"d\n{fields}c\nd\n{{oops\n.\n{edited}\n.\nyes\nc\nq\n", "resume", "o", "--plain")
        assert "| this is not JSON: line 1, column 2" in done.out
        assert '  ~   "amount": [-2-]{+9+},' in done.out
        assert "9 x tea to Bonn" in app.expect(0, "show", "o").out

    def test_each_action_is_decided_by_itself(self, app: App, talk: Talker) -> None:
        app.expect(3, "run", str(SAMPLES / "toolcalls.py"), "--headless", "--thread", "c")
        done = talk("d\nedit\nbo@example.org\n\nyes\nreject\nkeep it\nc\nq\n", "resume", "c", "--plain")
        assert "Action 1 of 2: send_mail." in done.out
        assert "Action 2 of 2: delete_file." in done.out
        assert "delete_file: reject keep it" in done.out
        assert "send_mail to bo@example.org" in done.out

    @pytest.mark.slow
    def test_of_several_actions_only_the_one_that_was_mistyped_is_asked_again(
        self, app: App, talk: Talker
    ) -> None:
        app.expect(3, "run", str(SAMPLES / "toolcalls.py"), "--headless", "--thread", "c")
        typed = "d\nreject\nsend it to Bo\n7\nrejec\nreject\nkeep it\nc\nq\n"
        done = talk(typed, "resume", "c", "--plain")
        for words in ("there is no answer 7", "did you mean 'reject'?"):
            assert done.out.count(words) == 1
        assert done.out.count("Action 1 of 2") == 1
        assert "send_mail: reject send it to Bo" in done.out
        assert "delete_file: reject keep it" in done.out

    @pytest.mark.slow
    def test_refused_arguments_ask_for_their_action_again(self, app: App, talk: Talker) -> None:
        app.expect(3, "run", str(SAMPLES / "toolcalls.py"), "--headless", "--thread", "c")
        done = talk("d\nedit\n.\napprove\napprove\nc\nq\n", "resume", "c", "--plain")
        assert "this action is not decided yet" in done.out
        assert "send_mail to team@example.org" in done.out


@pytest.mark.slow
def test_a_rollback_is_previewed_confirmed_and_followed(app: App, talk: Talker) -> None:
    sample = str(SAMPLES / "booking.py")
    app.expect(3, "run", sample, "--headless", "--thread", "trip", "--input", "city=Porto")
    no = talk("u\nno\nq\n", "resume", "trip", "--plain")
    assert "Roll back: these run in this order." in no.out
    assert "Nothing was done." in no.out
    done = talk("u\nyes\ntoo dear\nu\nq\n", "resume", "trip", "--plain")
    assert "Cancelled at step 6" in done.out
    assert "Rolled back: 3 undone." in done.out
    assert "Nothing is left to undo: 3 undone." in done.out


def test_breakpoints_are_set_listed_and_taken_away(talk: Talker) -> None:
    lines = "b increment:count > 1\nc\nb\nb increment\nc\nq\n"
    done = talk(lines, "run", "counter", "--plain", "--input", "limit=4", "--thread", "c")
    assert done.code == 0
    assert done.out.count("1. It stops before increment: count > 1.") == 2
    assert "Paused at step 2: breakpoint before increment: count > 1." in done.out
    assert "There is no breakpoint." in done.out
    assert "Done at step 4" in done.out


def test_breakpoints_are_switched_taken_away_by_number_and_kept(talk: Talker) -> None:
    lines = 'b after increment log "now {count}"\nb change count\nb off 2\nc\nq\n'
    done = talk(lines, "run", "counter", "--plain", "--input", "limit=2", "--thread", "c")
    assert "2. It stops change count, switched off." in done.out
    assert "increment logs:\n  | now 1\n" in done.out
    assert "Done at step 2" in done.out
    done = talk("b\nb 2\nb 9\nq\n", "run", "counter", "--plain", "--input", "limit=2", "--thread", "d")
    assert '1. It tells after increment log "now {count}".' in done.out
    assert done.out.count("change count") == 1
    assert "there is no breakpoint 9" in done.out


@pytest.mark.parametrize("key", ["s", "c"])
def test_a_node_with_side_effects_is_retried_only_after_a_warning(
    talk: Talker, tmp_path: Path, key: str
) -> None:
    (tmp_path / "pays.py").write_text(PAYS)
    run = ("run", str(tmp_path / "pays.py"), "--plain", "--thread", "t")
    output = talk(f"c\n{key}\nno\n{key}\nyes\nq\n", *run).out
    first_try, refused, tried = output.split("Runs again: pay.\npay has side effects: brings in the bank.\n")
    assert "attempt 1" in first_try
    assert "attempt 2" not in refused
    assert "pay runs, attempt 2" in tried


PAYS = """
from hitl_tui import END, START, Channel, StateGraph

def pay(state):
    raise ValueError("no money")

graph = StateGraph({"n": Channel(0)}, name="pays").add_node("pay", pay, external="the bank")
graph.add_edge(START, "pay").add_edge("pay", END)
"""


@pytest.mark.slow
def test_forks_are_listed_and_compared_with_any_other_step(app: App, talk: Talker) -> None:
    app.expect(0, "run", "counter", "--headless", "--input", "limit=3", "--thread", "c")
    app.expect(0, "fork", "c@1", "c-b", "count=7", "--as", "ann")
    output = talk("H\n=\n= c@1\n= @1\n= @9\n= gone\nq\n", "resume", "c-b", "--plain").out
    _, family, parent, shared, own, none, gone, _ = output.split("Command: ")
    assert "c: completed, step 3\n" in family
    assert "c-b: waiting, step 2, forked from c, differs after step 1: edited by ann" in family
    assert "c at step 3, beside step 2 here:" in parent
    assert "count: changed\n  - 3\n  + 7\n" in parent
    assert "First difference at step 2, by increment and by ann:" in parent
    assert "c at step 1, beside step 2 here:" in shared
    assert "First difference" not in shared
    assert "Step 1, beside step 2 here:" in own
    assert "count: changed\n  - 1\n  + 7\n" in own
    assert "there is no step 9" in none
    assert "there is no thread 'gone'" in gone
    own = talk("=\nq\n", "resume", "c", "--plain").out
    assert "Step 2, beside step 3 here:" in own
    first = talk("limit\n=\nV\nq\n", "run", "counter", "--plain", "--thread", "first").out
    assert "there is no earlier step" in first
    assert "1 step, 0 records; 1 state not compared" in first


def test_steps_lead_into_a_subgraph_and_out_of_it(talk: Talker, tmp_path: Path) -> None:
    (tmp_path / "nested.py").write_text(NESTED)
    done = talk("s into\ns\ns out\nc\nq\n", "run", str(tmp_path / "nested.py"), "--plain", "--thread", "t")
    assert "Thread t/team#1, graph inner." in done.out
    assert "Paused at step 1: two is next." in done.out
    assert "Paused at step 1: last is next." in done.out
    assert "Done at step 2" in done.out


NESTED = """
from hitl_tui import END, START, Channel, StateGraph

inner = StateGraph({"n": Channel(0)}, name="inner")
inner.add_node("one", lambda s: {"n": s["n"] + 1}).add_node("two", lambda s: {"n": s["n"] * 10})
inner.add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
graph = StateGraph({"m": Channel(3)}, name="outer")
graph.add_subgraph("team", inner, inputs={"m": "n"}, outputs={"n": "m"}).add_node("last", lambda s: {})
graph.add_edge(START, "team").add_edge("team", "last").add_edge("last", END)
"""


def test_an_invalid_condition_is_reported_with_its_place(talk: Talker) -> None:
    done = talk("b increment:count >\nb nowhere\nq\n", "run", "counter", "--plain", "--input", "limit=4")
    assert "at column 18: invalid syntax" in done.out
    assert "has no node 'nowhere'" in done.out


def test_one_of_several_requests_is_chosen_by_number(talk: Talker, tmp_path: Path) -> None:
    (tmp_path / "mapped.py").write_text(MAPPED)
    typed = "c\nd\n\nd\n3\nd\n2\nreject\n\nd\napprove\n\nc\nv found\nq\n"
    done = talk(typed, "run", str(tmp_path / "mapped.py"), "--thread", "m", "--plain")
    assert "2 requests wait:\n1. Keep ants?\n2. Keep bees?\n" in done.out
    assert "there is no request 3" in done.out + done.err
    assert "1 more to decide, d decides." in done.out
    found = " ".join(done.out[done.out.rindex("found") :].split())
    assert found.index("approve") < found.index("reject"), found
    assert done.code == 0


@pytest.mark.slow
def test_the_history_is_searched_in_plain_text_mode(waiting: Talker) -> None:
    done = waiting(
        '/GRADIENT\n/\n\\\n/ ? draft != ""\nW len(draft)\nW len(draft)\nl route\nl route 0\nq\n',
        "resume",
        "r",
        "--plain",
    )
    said = done.out
    assert "1 of" in said
    assert "2 of" in said
    assert said.index("2 of") < said.rindex("1 of")
    assert "It wrote:" in said
    assert "First at step 1, 3 steps checked." in said
    assert "1. len(draft)" in said
    assert said.rstrip().count("No watches.") == 1
    assert "route after " in said
    assert "There is no choice after step 0" in said
    refused = waiting("\\\n/ ? nothing ==\nW nope\nq\n", "resume", "r", "--plain").out
    assert "no search yet" in refused
    assert "column" in refused


def test_watches_are_added_listed_shown_at_a_step_and_removed(app: App, talk: Talker) -> None:
    app.expect(0, "run", "counter", "--headless", "--input", "limit=3", "--thread", "c")
    typed = ("W count", "W count > nope", "W len(log) > 1", "W step 1", "W step 9", "W count", "W", "q")
    output = talk("\n".join(typed) + "\n", "resume", "c", "--plain").out.split("Command: ")[1:]
    added, refused, both, first, none, away, listed = (part.strip() for part in output[: len(typed) - 1])
    assert added.startswith("1. count, changed by this step:\n  | 3\n")
    assert "at column 9: there is no channel 'nope'" in refused
    assert both.startswith(added)
    assert "2. len(log) > 1:\n  | true" in both
    assert first.startswith("1. count, changed by step 1:\n  | 1\n")
    assert "2. len(log) > 1:\n  | false" in first
    assert "there is no step 9" in none
    assert away == listed == both.partition("2. ")[2].join(("1. ", ""))
