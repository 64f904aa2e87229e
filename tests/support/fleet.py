"""A team of workers on one server, what is done to them, and what has to be so all the same.

Workers are processes; one is in a network namespace of its own, whose cable can be pulled, where this machine
has such, and of one the clock is an hour ahead: by a hook, since Python does not sleep below libfaketime.  A
trigger of the tests' own notes each commit with its writer, so that two that write at a time are seen, and
how long a thread of a dead worker waited for another one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg

from hitl_tui.engine import commands
from hitl_tui.engine.commands import Start
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import AnswerRefused, HitlError
from hitl_tui.loading.sources import open_graph
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.support.fleet_graph import ASKS, STEPS, TEMPO
from tests.support.places import ROOT
from tests.support.postgres import Postgres
from tests.support.program import APP

SPEC = f"{ROOT / 'tests/support/fleet_graph.py'}:graph"
_AHEAD = """
import time

for name, hour in (("time", 3600), ("time_ns", 3_600_000_000_000)):
    setattr(time, name, lambda real=getattr(time, name), hour=hour: real() + hour)
"""

LONGEST = 5.0
"""Seconds after which a dead worker's thread is to go on at the latest."""

_AUDIT = """
CREATE TABLE fleet_audit (
    n bigserial PRIMARY KEY, thread bigint, version bigint, token text, pid bigint,
    at timestamptz DEFAULT clock_timestamp()
);
CREATE FUNCTION fleet_note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO fleet_audit (thread, version, token, pid)
        VALUES (NEW.thread, NEW.version, coalesce(OLD.token, NEW.token), coalesce(OLD.pid, NEW.pid));
        RETURN NULL;
    END $$;
CREATE TRIGGER fleet_note AFTER UPDATE ON cursor FOR EACH ROW
    WHEN (NEW.version <> OLD.version) EXECUTE FUNCTION fleet_note();
CREATE TABLE fleet_jobs (
    n bigserial PRIMARY KEY, thread bigint, status text, pid bigint,
    at timestamptz DEFAULT clock_timestamp()
);
CREATE INDEX ON fleet_jobs (thread, n);
CREATE FUNCTION fleet_job() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO fleet_jobs (thread, status, pid)
        VALUES (NEW.lock::bigint, NEW.status, (SELECT pid FROM worker WHERE id = NEW.worker_id));
        RETURN NULL;
    END $$;
CREATE TRIGGER fleet_job AFTER INSERT OR UPDATE ON procrastinate_jobs FOR EACH ROW
    EXECUTE FUNCTION fleet_job();
CREATE TABLE fleet_workers (pid bigint, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION fleet_worker() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO fleet_workers (pid) VALUES (NEW.pid);
        RETURN NULL;
    END $$;
CREATE TRIGGER fleet_worker AFTER INSERT ON worker FOR EACH ROW EXECUTE FUNCTION fleet_worker();
"""


class Takeover(NamedTuple):
    """How long a thread of a killed worker waited for another one.

    Args:
        seconds: from the death until the next commit.
        takers: how many workers took its job meanwhile and ended before they committed anything.
        restarted: whether the server was restarted meanwhile.
        alone: seconds of them in which no worker was there: all had ended, and none was up again.
        story: what became of its job, in words.
    """

    seconds: float
    takers: int
    restarted: bool
    alone: float
    story: str


class Cable:
    """A network namespace with a cable to this machine, which can be pulled."""

    def __init__(self, number: int) -> None:
        self.namespace = f"hitl{os.getpid()}-{number}"
        self._end = f"hitl{os.getpid() % 100000}v{number}"
        there, here = f"10.213.{number}.2/30", f"10.213.{number}.1/30"
        self.address = here.partition("/")[0]
        _ip("netns", "add", self.namespace)
        try:
            _ip("link", "add", self._end, "type", "veth", "peer", "name", "wire", "netns", self.namespace)
            _ip("addr", "add", here, "dev", self._end)
            _ip("link", "set", self._end, "up")
            _ip("-n", self.namespace, "addr", "add", there, "dev", "wire")
            _ip("-n", self.namespace, "link", "set", "wire", "up")
            _ip("-n", self.namespace, "link", "set", "lo", "up")
        except OSError:
            self.close()
            raise

    def cut(self) -> None:
        """Nothing goes through any more, and nobody is told."""
        _ip("link", "set", self._end, "down")

    def restore(self) -> None:
        """It goes through again."""
        _ip("link", "set", self._end, "up")

    def close(self) -> None:
        """Take it away."""
        with suppress(OSError):
            _ip("netns", "del", self.namespace)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr}")


class Fleet:
    """Workers, and two people who decide whatever waits, each as fast as they can.

    Args:
        folder: for what the workers say, and for their configuration.
        tempo: seconds that a step takes.
        plain: all workers are alike: none is behind a cable, no clock is ahead.
    """

    def __init__(
        self, server: Postgres, folder: Path, *, workers: int = 4, tempo: float = 0.02, plain: bool = False
    ) -> None:
        self.server = server
        self._folder = folder
        self._tempo = tempo
        self.workers = workers
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        self.deaths: list[tuple[int, datetime]] = []
        """Threads that a worker held as it was killed, and when, by the server's clock."""
        self.ended: dict[int, datetime] = {}
        """When each process was killed, or was seen to have ended by itself."""
        self.ahead: list[int] = []
        """Processes whose clock is an hour ahead."""
        self.restarts: list[datetime] = []
        self.away: list[tuple[int, datetime, datetime]] = []
        """Which process was stopped or cut off, from when until when."""
        self.decided: list[tuple[str, str, str]] = []
        """Decisions that were confirmed: thread, request, who."""
        self.url = server.new_url()
        self._schema = self.url.rpartition("=")[2]
        self.store = PostgresCheckpointer(self.url)
        self.store.jobs().make()
        self.runner = open_graph(SPEC, self.store)
        self._over = threading.Event()
        self._running: list[subprocess.Popen[bytes] | None] = [None] * workers
        self.cable = None if plain else self._wire()
        self._ahead = None if plain else workers - 1
        (folder / "ahead").mkdir(exist_ok=True)
        (folder / "ahead/sitecustomize.py").write_text(_AHEAD)
        with self._admin() as db:
            db.execute(_AUDIT.encode())

    def _wire(self) -> Cable | None:
        try:
            return Cable(1)
        except OSError as error:
            self.notes.append(f"no cable is pulled: {error}")
            return None

    @contextmanager
    def _admin(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with self.server.admin() as db:
            db.execute(f"SET search_path = {self._schema}".encode())
            yield db

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        """What the server answers, once it does."""
        while True:
            try:
                with self._admin() as db:
                    return db.execute(statement.encode()).fetchall()
            except psycopg.OperationalError:
                time.sleep(0.1)

    def run(self, *statements: str) -> None:
        """Carry out statements as the owner of the tables."""
        with self._admin() as db:
            for statement in statements:
                db.execute(statement.encode())

    def mark(self, name: str) -> None:
        """Note that a thread is handed over now."""
        self.run(
            "INSERT INTO fleet_audit (thread, version, token) "
            f"SELECT key, -1, '' FROM thread WHERE id = '{name}'"
        )

    def started(self) -> list[float]:
        """Seconds from the marks of threads until their first commit."""
        rows = self.asked(
            "SELECT extract(epoch FROM min(a.at) - m.at)::float8 FROM fleet_audit AS m JOIN fleet_audit AS a "
            "ON a.thread = m.thread AND a.at > m.at WHERE m.version = -1 GROUP BY m.thread, m.at"
        )
        return [float(seconds) for (seconds,) in rows]

    # -- workers ----------------------------------------------------------------------------------

    def start(self, number: int) -> None:
        """Start a worker: the one before the last is behind the cable, the last one's clock is ahead."""
        url, words = self.url, [*APP]
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), TEMPO: str(self._tempo), "HOME": str(self._folder),
        }  # fmt: skip
        if self.cable is not None and number == len(self._running) - 2:
            url = url.replace("127.0.0.1", self.cable.address)
            words = ["ip", "netns", "exec", self.cable.namespace, *words]
        elif number == self._ahead:
            environment["PYTHONPATH"] = f"{self._folder / 'ahead'}{os.pathsep}{ROOT}"
        with (self._folder / f"worker{number}.log").open("ab") as log:
            self._running[number] = process = subprocess.Popen(
                [*words, "worker", "--graph", SPEC, "--store", url, "--concurrency", "4"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=ROOT,
            )  # fmt: skip
        self.counts["workers started"] += 1
        if number == self._ahead:
            self.ahead.append(process.pid)

    def start_all(self) -> None:
        """Start all workers."""
        for number in range(len(self._running)):
            self.start(number)

    def catch(self, number: int, threads: int) -> None:
        """Wait until a worker runs a thread, for a while, or all threads are done."""
        end = time.monotonic() + 10
        while time.monotonic() < end and self.done() < threads:
            self.begin_again()
            process = self._running[number]
            assert process is not None
            if self.asked(f"SELECT 1 FROM cursor WHERE pid = {process.pid} AND status = 'running' LIMIT 1"):
                return
            time.sleep(0.05)

    def begin_again(self) -> None:
        """Begin those again that have ended by themselves, as whatever looks after services does."""
        for number, process in enumerate(self._running):
            if process is not None and process.poll() is not None:
                self.counts["ended by themselves"] += 1
                self.ended[process.pid] = datetime.now(UTC)
                self.start(number)

    def kill(self, number: int) -> None:
        """End a worker as a power cut does, and begin another in its place."""
        process = self._running[number]
        assert process is not None
        killed = datetime.now(UTC)
        process.kill()
        process.wait(60)
        held = self.asked(
            f"SELECT thread, clock_timestamp() FROM cursor WHERE pid = {process.pid} AND status = 'running'"
        )
        self.deaths += [(int(thread), at) for thread, at in held]
        self.ended[process.pid] = killed
        self.counts["killed"] += 1
        self.start(number)

    def freeze(self, number: int, seconds: float) -> None:
        """Stop a worker for so long, and let it go on as if nothing had been."""
        process = self._running[number]
        assert process is not None
        with self._is_away(process.pid):
            process.send_signal(signal.SIGSTOP)
            self._over.wait(seconds)
            process.send_signal(signal.SIGCONT)
        self.counts["stopped and continued"] += 1

    def cut(self, seconds: float) -> None:
        """Pull the cable for so long."""
        if self.cable is not None:
            process = self._running[len(self._running) - 2]
            with self._is_away(process.pid if process else 0):
                self.cable.cut()
                self._over.wait(seconds)
                self.cable.restore()
            self.counts["network cut"] += 1

    @contextmanager
    def _is_away(self, pid: int) -> Iterator[None]:
        since = datetime.now(UTC)
        yield
        self.away.append((pid, since, datetime.now(UTC)))

    def restart(self, mode: str) -> None:
        """Restart the server."""
        self.restarts.append(datetime.now(UTC))
        self.server.restart(mode)
        self.counts["server restarted"] += 1

    # -- threads ----------------------------------------------------------------------------------

    def begin(self, threads: int, *, hand: bool = True) -> list[str]:
        """Begin threads and hand each to the workers, twice at once; their names."""
        names = [f"t{number}" for number in range(threads)]
        for name in names:
            session = Session.new(self.runner.graph, self.store, name, source=self.runner.source)
            with session.writing():
                commands.execute(session, Start({}))
        twice = [threading.Thread(target=self.hand, args=(names,)) for _ in range(2)] if hand else []
        for each in twice:
            each.start()
        for each in twice:
            each.join()
        return names

    def hand(self, names: list[str]) -> None:
        """Hand threads to the workers."""
        for name in names:
            self.store.jobs().hand(name)
            self.counts["enqueued"] += 1

    def decide(self) -> Callable[[], None]:
        """Let two people decide what waits; gives what ends that."""
        people = [threading.Thread(target=self._decide, args=(name,), daemon=True) for name in ("ann", "bob")]
        for person in people:
            person.start()

        def end() -> None:
            self._over.set()
            for person in people:
                person.join(60)

        return end

    def _decide(self, person: str) -> None:
        with closing(PostgresCheckpointer(self.url)) as store:
            runner = open_graph(SPEC, store)
            while not self._over.wait(0.2):
                with suppress(HitlError):
                    waits = store.waiting(100)
                    random.shuffle(waits)
                    for waiting in waits:
                        self._answer(runner, waiting.thread.info.thread_id, person)

    def _answer(self, runner: GraphRunner, name: str, person: str) -> None:
        for request in runner.open(name).cursor.pending:
            try:
                runner.answer(name, request.id, "yes", step=request.step, actor=person)
            except AnswerRefused:
                self.counts["second answers refused"] += 1
            except HitlError:
                self.counts["answers tried again"] += 1
            else:
                self.decided.append((name, request.id, person))
                # The database has queued it with the answer: this is the second time.
                self.store.jobs().hand(name)
                self.counts["enqueued behind a decision"] += 1

    def processor(self) -> dict[str, float]:
        """Seconds of processor time that the workers, the server and this process have taken."""
        workers = [process.pid for process in self._running if process is not None]
        return {
            "workers": sum(map(_processor, workers)),
            "server": _processor(self.server.pid) + sum(map(_processor, _children(self.server.pid))),
            "people": time.process_time(),
        }

    def done(self) -> int:
        """How many threads are completed."""
        return int(self.asked("SELECT count(*) FROM cursor WHERE status = 'completed'")[0][0])

    def close(self) -> None:
        """End everything."""
        self._over.set()
        for process in self._running:
            if process is not None:
                with suppress(ProcessLookupError):
                    process.kill()
                process.wait(60)
        self.store.close()
        if self.cable is not None:
            self.cable.close()

    # -- what has to be so ------------------------------------------------------------------------

    def wrong(self, names: list[str]) -> list[str]:
        """What is not as it has to be, in words; nothing where all is."""
        faults = [words for name in names for words in self._wrong_with(name)]
        answered = Counter(
            (name, entry.request_id, entry.actor)
            for name in names
            for entry in self.store.ledger(name)
            if entry.kind == "answer"
        )
        faults += [f"lost: the decision {decision}" for decision in self.decided if decision not in answered]
        twice = [request for request, number in answered.items() if number > 1]
        faults += [f"applied twice: {request}" for request in twice]
        self.counts["decisions"] = sum(answered.values())
        self.counts["commits an hour ahead"] = int(
            self.asked(f"SELECT count(*) FROM fleet_audit WHERE pid = ANY(ARRAY{self.ahead}::bigint[])")[0][0]
        )
        return [*faults, *self._two_writers()]

    def _wrong_with(self, name: str) -> Iterator[str]:
        cursor, values = self.store.cursor(name), self.runner.get_state(name)
        assert cursor is not None
        self.counts["threads"] += 1
        if cursor.status != "completed":
            yield f"{name}: {cursor.status} ({cursor.reason}) at step {cursor.head}"
            return
        points = list(reversed(self.store.checkpoints(name, None, 100)))
        ran = [point.node for point in points if point.source == "node"]
        self.counts["steps"] += len(points)
        self.counts["attempts that were lost"] += sum(point.attempt - 1 for point in points if point.node)
        if (ran, values["log"], values["n"], cursor.head) != (STEPS, STEPS, 10, 10 + len(ASKS)):
            yield f"{name}: ran {ran}, head {cursor.head}, log {values['log']}"
        ledger = self.store.ledger(name)
        self.counts["taken over"] += sum(entry.kind == "takeover" for entry in ledger)
        if sum(entry.kind == "answer" for entry in ledger) != len(ASKS):
            yield f"{name}: {[entry.kind for entry in ledger]}"
        for found in self.runner.verify(name, strict=True).mismatches:
            yield f"{name}: verify: {found}"

    def _two_writers(self) -> Iterator[str]:
        """Whoever has written after another has taken over, and versions that are missing or there twice."""
        written: dict[int, list[tuple[int, str]]] = {}
        for thread, version, token in self.asked("SELECT thread, version, token FROM fleet_audit ORDER BY n"):
            written.setdefault(thread, []).append((version, token))
        for thread, commits in written.items():
            versions = [version for version, _ in commits]
            if versions != list(range(versions[0], versions[0] + len(versions))):
                yield f"thread {thread}: versions {versions}"
            before, ended = "", set()
            for _, token in commits:
                if token != before:
                    ended.add(before)
                    before = token
                if token in ended:
                    yield f"thread {thread}: {token} wrote again after another had"
        self.counts["commits"] = sum(map(len, written.values()))

    def takeovers(self) -> list[Takeover]:
        """How long threads of killed workers waited for another worker, shortest first."""
        died: dict[int, list[datetime]] = {}
        for thread, at in self.deaths:
            died.setdefault(thread, []).append(at)
        found = (
            self._takeover(thread, at, after)
            for thread, moments in died.items()
            for at, after in zip(moments, [*moments[1:], None], strict=True)
        )
        return sorted(each for each in found if each is not None)

    def _takeover(self, thread: int, died: datetime, after: datetime | None) -> Takeover | None:
        until = f"AND at <= '{after}'" if after else ""
        (committed,) = self.asked(
            f"SELECT min(at) FROM fleet_audit WHERE thread = {thread} AND at > '{died}' {until}"
        )[0]
        if committed is None:
            return None
        moves = self.asked(
            f"SELECT status, pid, at FROM fleet_jobs WHERE thread = {thread} AND at > '{died}' "
            f"AND at <= '{committed}' ORDER BY n"
        )
        story = [f"{status} {pid or ''} at {(at - died).total_seconds():.2f}" for status, pid, at in moves]
        return Takeover(
            (committed - died).total_seconds(),
            sum(pid in self.ended and died < self.ended[pid] < committed for _, pid, _ in moves if pid),
            any(died < restarted < committed for restarted in self.restarts),
            self._alone(died, committed),
            ", ".join(story),
        )

    def _alone(self, begin: datetime, end: datetime) -> float:
        """Seconds between two moments at which no worker was there that could have taken anything."""
        there: list[tuple[datetime, datetime]] = []
        for pid, at in self.asked("SELECT pid, min(at) FROM fleet_workers GROUP BY pid"):
            came, went = max(at, begin), self.ended.get(pid, end)
            for left, back in sorted((left, back) for who, left, back in self.away if who == pid):
                there.append((came, min(left, went)))
                came = max(came, back)
            there.append((came, went))
        alone, until = 0.0, begin
        for came, went in sorted((came, went) for came, went in there if came < min(went, end)):
            alone += max(0.0, (came - until).total_seconds())
            until = max(until, went)
        return alone + max(0.0, (end - until).total_seconds())


def _processor(pid: int) -> float:
    """Seconds of processor time of a process and of its children that have ended; 0 of one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except FileNotFoundError:
        return 0.0  # its parent's tell it
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    texts = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for children in texts for child in children.split()]


def storm(fleet: Fleet, names: list[str], seconds: float, *, frozen: float, kill_every: float = 1.0) -> None:
    """Kill a random worker again and again, with a stop, a cut or a restart now and then, until all are done.

    Args:
        seconds: after which it stops, and all that is left is waited for.
        frozen: for how long a worker is stopped.
    """
    started, turn = time.monotonic(), 0
    others: list[threading.Thread] = []
    while fleet.done() < len(names) and time.monotonic() - started < seconds:
        turn += 1
        time.sleep(kill_every)
        fleet.begin_again()
        if turn % 60 == 10:
            others.append(threading.Thread(target=fleet.freeze, args=(0, frozen)))
            others[-1].start()
        if turn % 16 == 5:
            others.append(threading.Thread(target=fleet.cut, args=(6.0,)))
            others[-1].start()
        if turn % 30 == 25:
            fleet.restart("immediate" if turn % 60 == 25 else "fast")
        # The one that is stopped is left to wake up; all others take their turn.
        fleet.kill(random.randrange(1 if any(map(_alive, others)) else 0, fleet.workers))
    for other in others:
        other.join(60)


def _alive(thread: threading.Thread) -> bool:
    return thread.is_alive()


def table(fleet: Fleet, took: float) -> str:
    """Return a table of what was done and its outcome."""
    takeovers = fleet.takeovers()
    lines = [f"{name:<28} {number:>8,}" for name, number in sorted(fleet.counts.items())]
    lines.append(f"{'seconds':<28} {took:>8,.0f}")
    rest = [each for each in takeovers if not (each.takers or each.restarted or each.alone > LONGEST / 10)]
    for name, of in (
        ("threads of the dead", takeovers),
        ("a taker was killed, too", [each for each in takeovers if each.takers]),
        ("the server was restarted", [each for each in takeovers if each.restarted]),
        ("no worker was there for 0.5 s", [each for each in takeovers if each.alone > LONGEST / 10]),
        ("none of these", rest),
    ):
        lines.append(f"{name:<30} {len(of):>6,}")
        if of:
            p95 = of[min(len(of) - 1, len(of) * 95 // 100)]
            seconds = f"median {median(each.seconds for each in of):.2f}, p95 {p95.seconds:.2f}"
            lines.append(f"{'  went on after':<28} {seconds}, most {of[-1].seconds:.2f} s")
    slow = [
        f"{each.seconds:.2f} s, {each.alone:.2f} s alone: {each.story}"
        for each in takeovers
        if each.seconds > LONGEST
    ]
    return "\n".join([*lines, *slow, *fleet.notes])
