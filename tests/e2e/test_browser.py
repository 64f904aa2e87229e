"""The app in a real browser, headless: login to fork, reloads, sizes, other sites, many pages at once."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine import commands
from hitl_tui.engine.commands import Start
from hitl_tui.engine.thread.session import Session
from hitl_tui.loading.sources import open_graph
from hitl_tui.team.web.tokens import TokenFile
from tests.support.chromium import PROGRAM, Chromium, Tab, chromium
from tests.support.places import SAMPLES
from tests.support.program import APP, call

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here: apt-get install chromium"),
]


SENT_OF_A_PASTE = r"""
(() => {
  const stringify = JSON.stringify;
  let sent;
  JSON.stringify = (value) => { sent = value; return stringify(value); };
  try {
    WebSocket.prototype.send.call({}, stringify(["stdin", "\x1b[200~a\x1bx\x9bb\n\x1b[201~c\x1b[201~"]));
  } catch (error) {} finally { JSON.stringify = stringify; }
  return sent[1];
})()
"""
"""What page.js makes of a pasted text with ESC, C1 and an end mark in it, before it is sent."""


class Served:
    """A running `hitl-tui serve`."""

    def __init__(self, pid: int, url: str) -> None:
        self.pid = pid
        self.url, _, self.key = url.partition("/?")
        self.url = self.url.rstrip("/")

    @property
    def link(self) -> str:
        """The link of a lone owner."""
        return f"{self.url}/?{self.key}"

    @property
    def sessions(self) -> set[int]:
        """Its processes."""
        return set(map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()))


@asynccontextmanager
async def served(store: Path, *options: str) -> AsyncIterator[Served]:
    server = await asyncio.create_subprocess_exec(
        *APP, "serve", "--port", "0", "--store", str(store), *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        output = (await asyncio.wait_for(server.stdout.readline(), 60)).decode()
        found = re.search(r"http\S+", output)
        assert found is not None, output
        yield Served(server.pid, found.group())
    finally:
        server.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.wait(), 60) == 0


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Chromium]:
    async with chromium(tmp_path) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store in which r1 waits for whether its draft is good enough."""
    place = tmp_path / "runs.db"
    review = str(SAMPLES / "review.py")
    done = call("run", review, "--thread", "r1", "--input", "task=Hills", "--headless", "--store", str(place))
    assert done.returncode == 3, done.stderr
    return place


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


async def press_until(tab: Tab, key: str, wanted: str) -> None:
    """Press a key until it takes: a fresh review card ignores keys for half a second."""
    for _ in range(20):
        await tab.press(key)
        try:
            await asyncio.wait_for(tab.wait_for(wanted), 2)
        except TimeoutError:
            continue
        return
    raise AssertionError(f"{key} never brought up {wanted!r}; the page:\n{tab.text()}")


async def test_a_review_from_the_login_to_a_fork(browser: Chromium, store: Path, tokens: TokenFile) -> None:
    token = tokens.add("ann")
    async with served(store, "--auth", str(tokens.path)) as at:
        await browser.grant(at.url, "clipboardReadWrite", "clipboardSanitizedWrite")
        tab = await browser.tab(f"{at.url}/thread/r1")
        await log_in(tab, "hitl_wrong", token)
        await tab.wait_for("WAITING")
        assert await tab.js("location.pathname") == "/thread/r1"
        assert await tab.js(SENT_OF_A_PASTE) == "\x1b[200~axb\n[201~c\x1b[201~"

        await tab.press("e")
        await tab.wait_for("Saved as step 3")
        await tab.press("By hand. ")
        await tab.wait_for("~ By hand. Gradient")
        await tab.press("ctrl+s")
        await tab.wait_for("Channels at step 3")

        await tab.call("Page.reload")
        await tab.wait_until(lambda: "step 3" not in tab.text(), "a new terminal")
        await tab.wait_for("Channels at step 3")
        await tab.wait_for("“By hand. Gradient")

        await tab.press("y")
        await tab.wait_for("Of draft:")
        await tab.press("v")
        await tab.wait_for("copied")
        assert await tab.js("navigator.clipboard.readText()") == "By hand. " + SAID

        await tab.resize(640, 400)
        await tab.wait_until(lambda: tab.size[0] < 90 and "Channels" in tab.text(), "tabs")
        await tab.resize(1500, 900)
        await tab.wait_until(lambda: tab.size[0] > 150 and "What step 3 changed" in tab.text(), "all panes")

        await tab.press("[", "[")
        await tab.wait_for("Step 1 of 3")
        await tab.press("f")
        await tab.wait_for("r1-b")
        await tab.press("enter")
        # A key that comes in one read with the one before decides nothing.
        await press_until(tab, "enter", "thread r1-b")
        await tab.press("s")
        await tab.wait_for("WAITING")

        await tab.go(f"{at.url}/thread/r1")
        await tab.wait_for("Channels at step 3")
        await tab.press("d")
        await tab.wait_for("Your answer")
        await press_until(tab, "a", "send it now")
        await tab.press("enter")
        await tab.wait_for("approve by ann")
        assert {problem for problem in tab.problems if "401" not in problem} == set()
        assert tab.hosts == {at.url.removeprefix("http://")}
    assert "by ann" in call("log", "r1", "--store", str(store)).stdout, "who decides is who has logged in"
    assert call("verify", "r1", "--strict", "--store", str(store)).returncode == 0


async def log_in(tab: Tab, *tokens: str) -> None:
    """Type tokens into the form, the last of which is right."""
    for number, token in enumerate(tokens):
        again = str(number > 0).lower()
        await tab.wait_js(f"document.body.innerText.includes('unknown token') === {again}")
        await tab.wait_js("document.hasFocus() && document.activeElement?.id === 'token'")
        await tab.press(token, "enter")


SAID = "Gradient descent minimises a function by following its negative gradient in small steps."


async def test_a_link_to_a_request_opens_its_card_and_quitting_ends_the_session(
    browser: Chromium, store: Path
) -> None:
    kept = SQLiteCheckpointer(store)
    (waiting,) = kept.waiting(10)
    kept.close()
    async with served(store) as at:
        tab = await browser.tab(at.link)
        await tab.wait_for("Threads")
        await tab.go(f"{at.url}/request/{waiting.pending[0].id}")
        await tab.wait_for("Your answer")
        await tab.press("escape")
        await tab.wait_until(lambda: "Your answer" not in tab.text(), "the card to go")
        await tab.press("q")
        await tab.wait_js("document.body.classList.contains('-closed')")
        await tab.wait_until(lambda: "continue with: hitl-tui resume r1" in tab.text(), "the last words")
        await tab.js("document.querySelector('#again').click()")
        await tab.wait_for("Your answer")
        await tab.go(f"{at.url}/request/nothing")
        await tab.wait_until(lambda: "nothing waits as request" in tab.text(), "why there is none")


SLOW = """
import time
from pathlib import Path
from hitl_tui import END, START, Channel, StateGraph, append

def work(state):
    time.sleep(1 if Path(__file__).with_name("slow").exists() else 0)
    return {"n": state["n"] + 1, "log": state["n"]}

graph = StateGraph({"n": Channel(0), "until": Channel(1), "log": Channel([], reducer=append())}, name="slow")
graph.add_node("work", work).add_edge(START, "work")
graph.add_conditional_edge(
    "work", lambda s: "on" if s["n"] < s["until"] else "out", {"on": "work", "out": END}
)
"""


async def test_a_page_reloaded_during_a_run_continues_from_the_last_commit(
    browser: Chromium, store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    trusted = call("run", str(path), "--thread", "known", "--headless", "--store", str(store))
    assert trusted.returncode == 0, trusted.stderr
    with closing(SQLiteCheckpointer(store)) as kept:
        runner = open_graph(str(path), kept)
        session = Session.new(runner.graph, kept, "long", source=runner.source)
        with session.writing():
            commands.execute(session, Start({"until": 25}))

        (tmp_path / "slow").touch()
        async with served(store) as at:
            tab = await browser.tab(at.link)
            await tab.wait_for("Threads")
            await tab.go(f"{at.url}/thread/long")
            await tab.wait_for("Timeline")
            await tab.press("c")
            await tab.wait_until(
                lambda: re.search(r"Channels at step [1-9]", tab.text()) is not None, "a step"
            )
            (before,) = at.sessions
            await tab.call("Page.reload")
            async with asyncio.timeout(60):
                while before in at.sessions:  # noqa: ASYNC110  other processes tell nobody here
                    await asyncio.sleep(0.05)
            reached = runner.open("long").cursor
            assert (0 < reached.head < 25, reached.status) == (True, "waiting")
            await tab.wait_for("PAUSED")
            await tab.wait_for(f"Channels at step {reached.head}")
            (tmp_path / "slow").unlink()
            await tab.press("c")
            await tab.wait_for("✔ DONE")
            await tab.close()
        assert runner.get_state("long")["log"] == list(range(25))
        assert runner.verify("long", strict=True).mismatches == ()


async def test_an_audience_sees_everything_and_can_do_nothing(browser: Chromium, store: Path) -> None:
    before = await asyncio.to_thread(store.read_bytes)
    async with served(store, "--read-only") as at:
        tab = await browser.tab(at.link)
        await tab.wait_for("Threads")
        await tab.press("enter")
        await tab.wait_for("WAITING")
        for key in ("s", "c", "d", "e", "f"):
            await tab.press(key)
            await tab.wait_for("--read-only")
            await tab.press("escape")
        await tab.go(f"{at.url}/thread/r1")
        await tab.wait_for("WAITING")
        await tab.close()
    assert await asyncio.to_thread(store.read_bytes) == before


async def test_only_the_owner_of_the_account_exports_threads_of_a_file(
    browser: Chromium, store: Path, tokens: TokenFile
) -> None:
    token = tokens.add("ann")
    async with served(store, "--auth", str(tokens.path)) as at:
        tab = await browser.tab(at.url)
        await log_in(tab, token)
        await tab.wait_for("Threads")
        await tab.press("X")
        await tab.wait_for("can't be deleted")
        await tab.wait_for("'ann'")
        await tab.close()
    async with served(store) as at:
        tab = await browser.tab(at.link)
        await tab.wait_for("Threads")
        await tab.press("X")
        await tab.wait_for("thread 'r1' waits")
        await tab.press("f")
        await tab.wait_for("delete 1 thread for good")
        await tab.close()


class Proxy:
    """A proxy that has logged somebody in: it says who asks, whatever browsers say of that."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.to = 0

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a request on with its header, and then whatever both sides say."""
        head = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        named = [line for line in head if not line.lower().startswith(b"x-forwarded-user:")]
        if b"upgrade: websocket" not in [line.lower() for line in head]:  # so that each request comes here
            named = [line for line in named if not line.lower().startswith(b"connection:")]
            named.append(b"Connection: close")
        there, back = await asyncio.open_connection("127.0.0.1", self.to)
        back.write(b"\r\n".join([*named, f"X-Forwarded-User: {self.person}".encode(), b"", b""]))
        await asyncio.gather(self._pipe(reader, back), self._pipe(there, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while said := await reader.read(65536):
                writer.write(said)
                await writer.drain()
        writer.close()


async def test_a_person_whom_a_proxy_has_logged_in_decides_under_that_name(
    browser: Chromium, store: Path
) -> None:
    proxy = Proxy("carla")
    front = await asyncio.start_server(proxy.pass_on, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{front.sockets[0].getsockname()[1]}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        proxy.to = free.getsockname()[1]
    trust = ("--auth-header", "X-Forwarded-User", "--trusted-proxy", "127.0.0.1", "--public-url", url)
    async with front, served(store, *trust, "--port", str(proxy.to)) as at:
        tab = await browser.tab(f"{url}/thread/r1")
        await tab.wait_for("WAITING")
        await tab.press("d")
        await tab.wait_for("you are carla")
        await press_until(tab, "a", "send it now")
        await tab.press("enter")
        await tab.wait_for("approve by carla")
        assert tab.hosts == {at.url.removeprefix("http://")}
        await tab.close()
    assert "by carla" in call("log", "r1", "--store", str(store)).stdout


@pytest.fixture
def other_site() -> Iterator[str]:
    """A page of another site; to a browser localhost is another one than 127.0.0.1."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><title>other</title><a id=a>here</a>")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


async def test_another_site_gets_nothing_though_somebody_is_logged_in(
    browser: Chromium, store: Path, other_site: str
) -> None:
    async with served(store) as at:
        tab = await browser.tab(at.link)
        await tab.wait_for("Threads")
        foreign = await browser.tab(other_site)
        await foreign.wait_js("document.title === 'other'")
        socket = at.url.replace("http", "ws")
        opened = f"""new Promise(done => {{ const s = new WebSocket("{socket}/session");
            s.onopen = () => done("open"); s.onerror = () => done("refused"); }})"""
        assert await foreign.js(opened) == "refused"
        read = f"fetch('{at.url}/').then(r => r.text()).catch(() => 'refused')"
        assert await foreign.js(read) == "refused"
        framed = f"""new Promise(done => {{ const f = document.createElement("iframe");
            f.onload = () => done(f.contentWindow.length); f.src = "{at.url}/";
            document.body.append(f); }})"""
        await foreign.js(framed)
        assert len(at.sessions) == 1, "no session was opened but the person's own"

        # A link there leads to the thread, without another login.
        await foreign.js(f"document.querySelector('#a').href = '{at.url}/thread/r1'")
        await foreign.js("document.querySelector('#a').click()")
        await foreign.wait_for("WAITING")


async def test_twenty_sessions_at_once(browser: Chromium, store: Path, tokens: TokenFile) -> None:
    people = {f"person-{number}": tokens.add(f"person-{number}") for number in range(5)}
    async with served(store, "--auth", str(tokens.path)) as at:
        tabs: list[Tab] = []
        for token in list(people.values())[:4]:
            first = await browser.tab(f"{at.url}/thread/r1", own=True, size=(900, 600))
            await log_in(first, token)
            await first.wait_for("WAITING")  # others beside it have its cookie only when it is in
            tabs.append(first)
            tabs += [
                await browser.tab(f"{at.url}/thread/r1", beside=first, size=(900, 600)) for _ in range(4)
            ]
        await asyncio.gather(*(tab.wait_for("WAITING") for tab in tabs))
        assert len(at.sessions) == 20
        more = await browser.tab(f"{at.url}/thread/r1", own=True)
        await log_in(more, people["person-4"])
        await more.wait_until(lambda: "All 20 sessions are in use" in more.text(), "that there is no room")

        # What one does all see, while they are all there.
        await tabs[0].press("e")
        await tabs[0].wait_for("Saved as step 3")
        await tabs[0].press("Together. ")
        await tabs[0].wait_for("~ Together. Gradient")
        await tabs[0].press("ctrl+s")
        await asyncio.gather(
            *(tab.wait_until(lambda tab=tab: "step 3" in tab.text(), "step 3") for tab in tabs)
        )

        for tab in tabs[1:]:
            await tab.close()
        async with asyncio.timeout(60):
            while len(at.sessions) > 1:  # noqa: ASYNC110  other processes tell nobody here
                await asyncio.sleep(0.05)


def test_the_server_that_is_killed_leaves_no_session(store: Path) -> None:
    async def check() -> None:
        import aiohttp

        server = await asyncio.create_subprocess_exec(
            *APP, "serve", "--port", "0", "--store", str(store), stdout=asyncio.subprocess.PIPE
        )
        assert server.stdout is not None
        found = re.search(r"http\S+", (await server.stdout.readline()).decode())
        assert found is not None
        at = Served(server.pid, found.group())
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            await client.get(at.link, headers={"Sec-Fetch-Site": "none"})  # as a link that a person opened
            async with client.ws_connect(f"{at.url}/session", headers={"Origin": at.url}) as socket:
                await socket.receive(60)
                sessions = at.sessions
                assert sessions
                os.kill(server.pid, signal.SIGKILL)
                await server.wait()
        async with asyncio.timeout(30):
            while any(Path(f"/proc/{pid}").exists() for pid in sessions):  # noqa: ASYNC110, ASYNC240  as above
                await asyncio.sleep(0.05)

    asyncio.run(check())
