"""Notices reach a person once by each notifier, also across restarts, and without control characters."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.commands import HandOver
from hitl_tui.engine.log.requests import Request, Vote
from hitl_tui.engine.log.threads import Waiting
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.stores import Checkpointer, open_store
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.team.notifiers import RINGS_APART, CommandHook, NotificationFailed, Services, TerminalNotice
from hitl_tui.team.sent_notices import SentNotices
from hitl_tui.team.watch import Watch
from hitl_tui.view.notices import Notice, asked, ended, terminal_bytes, title_bytes, was_seen, words
from hitl_tui.view.notices import Person as Who
from tests.support import tape as tapes
from tests.support.postgres import PASSWORD, Postgres

HOUR = 3_600_000_000


def publishing(store: Checkpointer, *, title: str = "Publish it?", **gate: Any) -> GraphRunner:
    asks = Gate("publish", title=title, choices=[GateChoice("approve", "send it")], **gate)
    graph = StateGraph({"draft": Channel("")}, name="press")
    graph.add_node("write", lambda _state: {"draft": "news"}).add_node("publish", lambda _state: {})
    graph.add_edge(START, "write").add_edge("write", "publish").add_edge("publish", END)
    return graph.compile(checkpointer=store, interrupt_before=[asks])


def answer(runner: GraphRunner, thread: str, actor: str) -> None:
    (request,) = runner.open(thread).cursor.pending
    runner.answer(thread, request.id, "approve", step=request.step, actor=actor)
    runner.invoke(thread_id=thread)


def patiently(true: Callable[[], bool]) -> bool:
    """Whether something becomes true within a minute."""
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


class RecordingNotifier:
    """A notifier that keeps the texts it was given."""

    name = "recording"
    gathers = False

    def __init__(self) -> None:
        self.texts: list[str] = []

    def send(self, text: str, document: bytes) -> None:
        self.texts.append(text)


class RecordingAgain(RecordingNotifier):
    """Another one."""

    name = "again"


class Person:
    """Somebody with a store, and watches of theirs."""

    def __init__(self, tmp_path: Path, name: str = "ann") -> None:
        self.path, self.name = tmp_path / "notices.db", name
        self.store: Checkpointer = MemoryCheckpointer()
        self.notifier = RecordingNotifier()
        self.failures: list[HitlError] = []
        self.counts: list[int] = []

    def watch(self, *notifiers: Any, **how: Any) -> Watch:
        return Watch(
            self.store,
            SentNotices(self.path, f"store\n{self.name}"),
            notifiers or (self.notifier,),
            person=self.name,
            before=HOUR,
            encode=lambda notice: json.dumps({"thread": notice.thread}).encode(),
            failed=self.failures.append,
            counted=self.counts.append,
            **how,
        )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What the test opens; it is closed with it."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def ann(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    person.failures.clear()  # a failure has the frames of its watch, which has the file open


def look(watch: Watch) -> list[Notice]:
    """Look, though nothing of a memory store says that it has changed."""
    watch._looked = 0.0
    return watch.look()


class TestWhatIsTold:
    def test_a_new_request_is_reported_once(self, ann: Person) -> None:
        watch = ann.watch()
        assert look(watch) == []
        publishing(ann.store).invoke(thread_id="press-q3")
        assert [notice.happening for notice in look(watch)] == ["waits"]
        assert look(watch) == []
        assert ann.notifier.texts == ["press-q3 waits: Publish it?"]
        assert ann.counts == [0, 1]

    def test_a_notice_of_another_store_of_the_inbox_names_it(self, ann: Person) -> None:
        publishing(ann.store).invoke(thread_id="press-q3")
        (notice,) = look(ann.watch(source="finance"))
        assert notice.source == "finance"
        assert ann.notifier.texts == ["finance · press-q3 waits: Publish it?"]

    def test_a_request_handed_over_to_the_person_is_reported_again(self, ann: Person) -> None:
        runner = publishing(ann.store)
        request = runner.invoke(thread_id="t").pending[0]
        watch = ann.watch()
        assert len(look(watch)) == 1
        runner._execute("t", HandOver(request.id, request.step, "bob", "cy"))
        assert look(watch) == []
        runner._execute("t", HandOver(request.id, request.step, "ann", "bob"))
        assert [notice.happening for notice in look(watch)] == ["waits"]
        assert look(watch) == []

    def test_requests_that_arrive_together_ring_once(self, ann: Person) -> None:
        written: list[str] = []
        now = [100.0]
        watch = ann.watch(TerminalNotice(["bell", "osc9"], written.append, lambda: now[0]))
        runner = publishing(ann.store)
        for thread in ("one", "two"):
            runner.invoke(thread_id=thread)
            assert len(look(watch)) == 1
        assert [text.count("\a") for text in written] == [1, 0]
        assert all("\x1b]9;hitl-tui: " in text for text in written)
        for thread in ("three", "four"):  # each just after the one before
            now[0] += RINGS_APART / 2
            runner.invoke(thread_id=thread)
            look(watch)
            assert "\a" not in written[-1]
        now[0] += RINGS_APART
        runner.invoke(thread_id="five")
        look(watch)
        assert written[-1].count("\a") == 1

    def test_the_terminal_gets_what_arrives_at_one_moment_as_one(self, ann: Person) -> None:
        written: list[str] = []
        watch = ann.watch(TerminalNotice(["bell", "osc9"], written.append), ann.notifier)
        runner = publishing(ann.store)
        for thread in ("one", "two", "three"):
            runner.invoke(thread_id=thread)
        assert len(look(watch)) == 3
        (data,) = written
        assert data.count("\a") == 1
        assert data.count("waits: Publish it?, and 2 more") == 1
        assert len(ann.notifier.texts) == 3

    def test_the_end_of_a_thread_just_after_your_decision_does_not_ring_at_the_screen(
        self, ann: Person
    ) -> None:
        runner = publishing(ann.store)
        for thread in ("one", "two"):
            runner.invoke(thread_id=thread)
        at_screen = ann.watch(quiet=True)
        look(at_screen)
        for thread in ("one", "two"):
            answer(runner, thread, "ann")
        assert look(at_screen) == []
        ledger, cursor = ann.store.ledger("one"), ann.store.cursor("one")
        summary = ann.store.summary("one")
        assert cursor
        assert summary
        later = msgspec.structs.replace(summary, updated_at=summary.updated_at + HOUR)
        assert ended(later, cursor, ledger, "ann", 60_000_000) is not None

    def test_a_request_that_is_handed_over_after_it_was_seen_is_news(self, ann: Person) -> None:
        runner = publishing(ann.store)
        request = runner.invoke(thread_id="t").pending[0]
        seen = runner.open("t").progress
        watch = ann.watch(sees=lambda notice: was_seen(notice, seen))
        assert look(watch) == []
        runner._execute("t", HandOver(request.id, request.step, "ann", "bob"))
        assert [notice.happening for notice in look(watch)] == ["waits"]
        assert was_seen(look(ann.watch(RecordingAgain()))[0], runner.open("t").progress)

    def test_a_notice_is_not_repeated_after_a_restart_or_by_another_process(self, ann: Person) -> None:
        publishing(ann.store).invoke(thread_id="t")
        one, other = ann.watch(), ann.watch()
        assert len(look(one)) == 1
        assert look(other) == look(ann.watch()) == []
        assert len(ann.notifier.texts) == 1

    def test_another_notifier_and_another_person_get_the_notice_too(
        self, ann: Person, tmp_path: Path
    ) -> None:
        publishing(ann.store).invoke(thread_id="t")
        look(ann.watch())
        written: list[str] = []
        assert len(look(ann.watch(TerminalNotice(["bell"], written.append)))) == 1
        assert written == ["\a"]
        bob = Person(tmp_path, "bob")
        bob.store = ann.store
        assert len(look(bob.watch())) == 1

    def test_only_what_the_person_may_answer(self, ann: Person) -> None:
        publishing(ann.store, reviewers=["bob"]).invoke(thread_id="his")
        publishing(ann.store, reviewers=["ann"], risk="high").invoke(thread_id="hers")
        look(ann.watch())
        assert ann.notifier.texts == ["hers waits: high risk, Publish it?"]

    def test_requests_for_logins_are_reported_to_their_logins(
        self, tmp_path: Path, postgres: Postgres, postgres_url: str
    ) -> None:
        for login in ("rita", "olga"):
            postgres.login(login)
        postgres.group("editors", "rita")
        with closing(open_store(postgres_url)) as store:
            assert isinstance(store, PostgresCheckpointer)
            store.make_roles()
            postgres.grant("hitl_viewer", "rita", "olga")
            publishing(store, logins=["editors"]).invoke(thread_id="theirs")
            publishing(store, logins=["olga"]).invoke(thread_id="hers")
        schema = postgres_url.rpartition("=")[2]
        notices_by_login = {}
        for login in ("rita", "olga"):
            # Both call themselves alike: what counts is as whom the database knows them.
            person = Person(tmp_path, "ann")
            person.path = tmp_path / login
            url = postgres.url(user=login, password=PASSWORD, schema=schema)
            with closing(open_store(url, create=False)) as person.store:
                person.watch().look()
            notices_by_login[login] = person.notifier.texts
        assert notices_by_login == {
            "rita": ["theirs waits: Publish it?"],
            "olga": ["hers waits: Publish it?"],
        }

    def test_a_login_that_has_voted_is_not_notified_under_another_name(self) -> None:
        vote = Vote("bob", "approve", 1, login="rita")
        request = Request(
            "r", "approve", "a", "after", 1, "ok?", logins=("editors",), votes=(vote,), quorum=2
        )
        waits = Waiting(tapes.summary("t", None, 0, 1, status="waiting"), (request,))
        assert asked([waits], Who("ann", ("rita", "editors"))) == []
        assert len(asked([waits], Who("ann", ("olga", "editors")))) == 1
        assert asked([waits], Who("bob", ("olga", "editors"))) == []
        assert asked([waits], Who("ann")) == []

    def test_a_store_that_reports_writes_notifies_at_once(self, ann: Person, postgres_url: str) -> None:
        with closing(open_store(postgres_url)) as ann.store, closing(open_store(postgres_url)) as other:
            is_sent = threading.Event()
            ann.notifier.send = lambda text, document: is_sent.set()  # type: ignore[method-assign]
            watch = ann.watch()
            running = threading.Thread(target=watch.run, args=(3600.0,))
            running.start()
            try:
                assert patiently(lambda: ann.store.changes() is not None)
                publishing(other).invoke(thread_id="t")
                assert is_sent.wait(60)
            finally:
                watch.stop()
                running.join(60)
            assert not running.is_alive()

    def test_a_near_deadline_is_reported(self, ann: Person) -> None:
        publishing(ann.store, deadline=1800, on_timeout="approve").invoke(thread_id="soon")
        publishing(ann.store, deadline=180_000, on_timeout="approve").invoke(thread_id="later")
        watch = ann.watch()
        notices = look(watch)
        assert sorted((notice.thread, notice.happening) for notice in notices) == [
            ("later", "waits"),
            ("soon", "deadline"),
            ("soon", "waits"),
        ]
        assert any("(expires in 29m" in text or "(expires in 30m" in text for text in ann.notifier.texts)
        assert look(watch) == []
        assert watch._again is not None

    def test_the_end_of_a_thread_you_decided_in_is_reported(self, ann: Person) -> None:
        runner = publishing(ann.store)
        watch = ann.watch()
        for thread in ("mine", "theirs"):
            runner.invoke(thread_id=thread)
        look(watch)
        answer(runner, "mine", "ann")
        answer(runner, "theirs", "bob")
        (end,) = look(watch)
        assert (end.happening, end.thread) == ("ended", "mine")
        assert ann.notifier.texts[-1].startswith("mine: done, after publish ")
        assert look(watch) == []

    def test_what_was_on_screen_before_one_went_elsewhere_is_seen(self, ann: Person) -> None:
        runner = publishing(ann.store)
        runner.invoke(thread_id="t")
        waits = runner.open("t").progress
        (asks,) = look(ann.watch())
        answer(runner, "t", "ann")
        (ends,) = look(ann.watch())
        done = runner.open("t").progress
        near = msgspec.structs.replace(asks, happening="deadline")
        seen = [[was_seen(notice, progress) for progress in (waits, done)] for notice in (asks, ends, near)]
        assert seen == [[True, False], [False, True], [False, False]]

    def test_a_fork_of_an_ended_thread_is_not_reported(self, ann: Person) -> None:
        runner = publishing(ann.store)
        watch = ann.watch()
        runner.invoke(thread_id="t")
        look(watch)
        answer(runner, "t", "ann")
        assert [notice.thread for notice in look(watch) if notice.happening == "ended"] == ["t"]
        runner.fork("t", runner.open("t").cursor.head, "t-b")
        assert look(watch) == []

    def test_a_thread_that_ended_while_nobody_watched_is_reported(self, ann: Person) -> None:
        runner = publishing(ann.store)
        runner.invoke(thread_id="t")
        look(ann.watch())
        answer(runner, "t", "ann")
        assert [notice.happening for notice in look(ann.watch())] == ["ended"]

    def test_requests_on_screen_count_as_seen(self, ann: Person) -> None:
        runner = publishing(ann.store)
        runner.invoke(thread_id="old")
        watch = ann.watch(quiet=True, sees=lambda notice: notice.thread == "open")
        assert look(watch) == []
        runner.invoke(thread_id="open")
        runner.invoke(thread_id="new")
        look(watch)
        assert ann.notifier.texts == ["new waits: Publish it?"]

    def test_a_store_that_has_not_changed_is_not_read(
        self, ann: Person, tmp_path: Path, stack: ExitStack
    ) -> None:
        ann.store = stack.enter_context(closing(open_store(str(tmp_path / "runs.db"))))
        watch = ann.watch()
        watch.look()
        read: list[int] = []
        waiting = ann.store.waiting
        ann.store.waiting = lambda limit: read.append(limit) or waiting(limit)  # type: ignore[method-assign, func-returns-value]
        assert watch.look() == []
        assert read == []
        publishing(ann.store).invoke(thread_id="t")
        assert len(watch.look()) == 1


HOSTILE = "\x1b]0;owned\a\x9b2J\x07;\u202eevil\n" + "x" * 5000


class TestTerminal:
    def test_nothing_hostile_of_a_title_gets_through(self, ann: Person) -> None:
        written: list[str] = []
        signals = ["bell", "osc9", "osc777", "osc99"]
        publishing(ann.store, title=HOSTILE).invoke(thread_id="t")
        look(ann.watch(TerminalNotice(signals, written.append)))  # type: ignore[arg-type]
        (data,) = written
        parts = data.removeprefix("\a").split("\x1b\\")
        assert parts.pop() == ""
        for part, begin in zip(
            parts, ("\x1b]9;hitl-tui: ", "\x1b]777;notify;hitl-tui;", "\x1b]99;;"), strict=True
        ):
            assert part.startswith(begin)
            payload = part.removeprefix(begin)
            assert payload.isprintable()
            assert ";" not in payload
            assert "\u202e" not in payload
            assert len(payload) <= 220

    def test_only_the_configured_signals_are_sent(self) -> None:
        assert terminal_bytes(["osc9"], "x") == "\x1b]9;hitl-tui: x\x1b\\"
        assert terminal_bytes([], "x") == ""

    def test_the_title_counts(self) -> None:
        assert title_bytes(3) == "\x1b]2;(3) hitl-tui\x1b\\"
        assert title_bytes(0) == "\x1b]2;hitl-tui\x1b\\"

    def test_the_words_of_an_end(self) -> None:
        notice = Notice("ended", "press-q3", "g", 0, "k", outcome="done, after publish")
        assert words(notice, 0).startswith("press-q3: done, after publish ")


class TestCommand:
    def test_it_gets_the_document_and_no_shell(self, ann: Person, tmp_path: Path) -> None:
        out = tmp_path / "out $(touch owned).json"
        code = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
        publishing(ann.store).invoke(thread_id="t")
        look(ann.watch(CommandHook([sys.executable, "-c", code, str(out)])))
        assert json.loads(out.read_text()) == {"thread": "t"}
        assert ann.failures == []

    def test_a_line_for_the_shell_where_it_is_one(self, ann: Person, tmp_path: Path) -> None:
        publishing(ann.store).invoke(thread_id="t")
        look(ann.watch(CommandHook(f"cat > '{tmp_path}/out.json'")))
        assert json.loads((tmp_path / "out.json").read_text()) == {"thread": "t"}

    @pytest.mark.parametrize(
        ("command", "why"),
        [
            (["/no/such/program"], "can't be run"),
            ([sys.executable, "-c", "raise SystemExit(3)"], "exit code 3"),
        ],
    )
    def test_a_failing_command_is_reported_once(self, ann: Person, command: list[str], why: str) -> None:
        runner = publishing(ann.store)
        watch = ann.watch(CommandHook(command), ann.notifier)
        for thread in ("a", "b"):
            runner.invoke(thread_id=thread)
            look(watch)
        assert len(ann.failures) == 1
        assert why in ann.failures[0].message
        assert len(ann.notifier.texts) == 2

    def test_a_command_that_takes_too_long_is_killed(self) -> None:
        with pytest.raises(NotificationFailed, match=r"longer than 0\.2 s"):
            CommandHook([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.2).send("x", b"{}")


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[Any]]]:
    """A server that takes what Apprise's json:// posts, and what it was posted."""
    posted: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if "refuse" in self.path else 200)
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"json://user:s3cret@127.0.0.1:{server.server_port}", posted
    server.shutdown()
    thread.join()
    server.server_close()


class TestServices:
    @pytest.mark.slow
    def test_a_real_receiver_gets_the_notice(self, ann: Person, receiver: tuple[str, list[Any]]) -> None:
        url, posted = receiver
        publishing(ann.store).invoke(thread_id="press-q3")
        look(ann.watch(Services([url])))
        assert [(each["title"], each["message"]) for each in posted] == [
            ("hitl-tui", "press-q3 waits: Publish it?")
        ]
        assert ann.failures == []

    @pytest.mark.slow
    def test_the_error_of_a_failed_service_has_no_secret(
        self, ann: Person, receiver: tuple[str, list[Any]]
    ) -> None:
        url, _ = receiver
        publishing(ann.store).invoke(thread_id="t")
        look(ann.watch(Services([f"{url}/refuse"])))
        (failure,) = ann.failures
        assert "s3cret" not in str(failure) + repr(failure.__context__)
        with pytest.raises(UsageError, match="does not know URL 1") as error:
            Services(["nosuch://user:s3cret@x"])
        assert "s3cret" not in str(error.value)
