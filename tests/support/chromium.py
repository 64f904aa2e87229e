"""A headless Chromium, spoken to by the DevTools protocol, and what its page's terminal shows."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.emulator import Emulator

PATIENCE = 60.0
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_NAMED = {
    "enter": ("Enter", "Enter", 13, "\r"),
    "escape": ("Escape", "Escape", 27, ""),
    "tab": ("Tab", "Tab", 9, ""),
    "up": ("ArrowUp", "ArrowUp", 38, ""),
    "down": ("ArrowDown", "ArrowDown", 40, ""),
    "left": ("ArrowLeft", "ArrowLeft", 37, ""),
    "right": ("ArrowRight", "ArrowRight", 39, ""),
}


class Tab:
    """A page: its terminal is what came over its websocket, on an emulated one."""

    def __init__(self, browser: Chromium, session: str, target: str, person: dict[str, str]) -> None:
        self._browser = browser
        self._session = session
        self.target = target
        self.person = person
        self.hosts: set[str] = set()
        self.problems: list[str] = []
        self._reset(80, 24)

    def _reset(self, columns: int, rows: int) -> None:
        self._screen = Emulator(columns, rows)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the protocol."""
        return await self._browser.call(method, params, self._session)

    def on_event(self, method: str, params: dict[str, Any]) -> None:
        """An event of the protocol."""
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith("data:"):
                self.hosts.add(url.split("/")[2])
        elif method == "Network.webSocketCreated":
            self.hosts.add(params["url"].split("/")[2])
            self._reset(*self._screen.size)
        elif method == "Network.webSocketFrameReceived" and params["response"]["opcode"] == 2:
            self._screen.feed(base64.b64decode(params["response"]["payloadData"]))
        elif method == "Network.webSocketFrameSent" and params["response"]["opcode"] == 1:
            kind, *rest = json.loads(params["response"]["payloadData"])
            if kind == "resize":
                self._screen.resize(rest[0]["width"], rest[0]["height"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params)[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""
        return self._screen.size

    def text(self) -> str:
        """The terminal as text."""
        return self._screen.text()

    async def go(self, url: str) -> None:
        """Open an address."""
        await self.call("Page.navigate", url=url)

    async def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        return answer["result"].get("value")

    async def wait_for(self, wanted: str) -> str:
        """Wait until a text is on the terminal."""
        return await self.wait_until(lambda: wanted in self.text(), wanted)

    async def wait_until(self, done: Callable[[], bool], what: str) -> str:
        """Wait until something is so; returns the terminal."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not done():
                    self._browser.news.clear()
                    await self._browser.news.wait()
        except TimeoutError:
            raise AssertionError(f"waited for {what}; {self.problems}; the page:\n{self.text()}") from None
        return self.text()

    async def wait_js(self, expression: str) -> None:
        """Wait until something is true in the page."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await self.js(expression):  # noqa: ASYNC110  a page tells nobody
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(
                f"waited for {expression}; {await self.js('document.body.innerText')}"
            ) from None

    async def press(self, *keys: str) -> None:
        """Press keys by name, or type a text letter by letter."""
        for name in keys:
            if name in _NAMED:
                key, code, number, text = _NAMED[name]
                await self._key(key, code, number, text)
            elif name.startswith("ctrl+"):
                await self._key(name[5], f"Key{name[5].upper()}", ord(name[5].upper()), "", 2)
            else:
                for letter in name:
                    number = (
                        ord(letter.upper()) if letter.isalnum() else 0
                    )  # others would be keys like delete
                    await self._key(letter, "", number, letter)

    async def _key(self, key: str, code: str, number: int, text: str, modifiers: int = 0) -> None:
        what = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **what)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    async def resize(self, width: int, height: int) -> None:
        """Another size of the window, in pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def picture(self) -> bytes:
        """What the page looks like, as a PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])

    async def close(self) -> None:
        """Close the tab."""
        await self._browser.call("Target.closeTarget", {"targetId": self.target})


class Chromium:
    """The browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}
        self.news = asyncio.Event()

    async def call(self, method: str, params: dict[str, Any], session: str = "") -> dict[str, Any]:
        """A command of the protocol, to the browser or one of its tabs."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        await self._socket.send_json({**message, "sessionId": session} if session else message)
        async with asyncio.timeout(PATIENCE):
            return await answer

    async def listen(self) -> None:
        """Take what the browser tells."""
        async for message in self._socket:
            reply = json.loads(message.data)
            if "id" in reply:
                answer = self._answers.pop(reply["id"])
                if "error" in reply:
                    answer.set_exception(RuntimeError(reply["error"]["message"]))
                else:
                    answer.set_result(reply["result"])
            elif (tab := self._tabs.get(reply.get("sessionId", ""))) is not None:
                tab.on_event(reply["method"], reply["params"])
            self.news.set()

    async def tab(
        self,
        url: str,
        *,
        size: tuple[int, int] = (1100, 760),
        own: bool = False,
        beside: Tab | None = None,
    ) -> Tab:
        """A new tab; with `own` of somebody else, who has no cookies yet; `beside` one of the same person."""
        context = dict(beside.person) if beside is not None else {}
        if own:
            made = await self.call("Target.createBrowserContext", {})
            context = {"browserContextId": made["browserContextId"]}
        target = (await self.call("Target.createTarget", {"url": "about:blank", **context}))["targetId"]
        session = (await self.call("Target.attachToTarget", {"targetId": target, "flatten": True}))[
            "sessionId"
        ]
        tab = self._tabs[session] = Tab(self, session, target, context)
        for domain in ("Page", "Network", "Runtime", "Log"):
            await tab.call(f"{domain}.enable")
        await tab.resize(*size)
        await tab.go(url)
        return tab

    async def grant(self, origin: str, *permissions: str) -> None:
        """What a person would allow a page."""
        await self.call("Browser.grantPermissions", {"origin": origin, "permissions": list(permissions)})


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Chromium]:
    """A browser with a profile of its own."""
    assert PROGRAM is not None
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run",
        "--enable-unsafe-swiftshader", "--remote-debugging-port=0", f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        port = profile / "DevToolsActivePort"
        async with asyncio.timeout(PATIENCE):
            while not (port.exists() and len(port.read_text().split()) == 2):  # noqa: ASYNC110  a file tells nobody
                await asyncio.sleep(0.05)
        number, path = port.read_text().split()
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(f"ws://127.0.0.1:{number}{path}", max_msg_size=0) as socket,
        ):
            browser = Chromium(socket)
            listening = asyncio.create_task(browser.listen())
            yield browser
            with suppress(Exception):
                await browser.call("Browser.close", {})
            listening.cancel()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
