"""The web server: pages that need a login, each with a process of the app.

Every request has to name this server as its host. A request that changes something or opens a session has to
come from one of our own pages. Other requests are refused before anything else is done.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import quote, urlsplit
from weakref import WeakValueDictionary

import msgspec
from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from hitl_tui.engine.log.threads import check_thread_id
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.team.web import pages
from hitl_tui.team.web.connections import PATIENCE, Connections, address_of
from hitl_tui.team.web.downloads import Downloads
from hitl_tui.team.web.logins import LASTS, Attempts, Login, Logins
from hitl_tui.team.web.origins import host_of, origin_of
from hitl_tui.team.web.page_session import Download, PageSession
from hitl_tui.team.web.tokens import LONGEST_TOKEN, KnownTokens, check_name

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOGIN_BODY: Final = 8 * 1024
_LONGEST_MESSAGE: Final = 1024 * 1024
"""Most bytes of a message from a page; pasted text is one message."""
_HEARTBEAT: Final = 15.0
_CHECK_LOGIN_EVERY: Final = 2.0
"""Seconds between checks whether the person in a session is still logged in."""
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LINK: Final = re.compile(r"/(?:(thread|request)/([^/?#]+))?")
_SIDES: Final = (1, 1000)

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), clipboard-write=(self)",
    # With "no-referrer" browsers would send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Server": "hitl-tui",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# xterm.js adds style elements.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self' {socket}; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


class PageLink(msgspec.Struct, frozen=True):
    """What a link opens: a thread, the thread of a request, or the list of threads if both are empty."""

    thread: str = ""
    request: str = ""

    @property
    def path(self) -> str:
        """The path of its page."""
        if self.thread:
            return f"/thread/{quote(self.thread, safe='')}"
        return f"/request/{self.request}" if self.request else "/"


def link_of(kind: str, name: str) -> PageLink | None:
    """Return what a path opens; None if its name is invalid."""
    if not kind:
        return PageLink()
    if kind == "request":
        return PageLink(request=name) if _REQUEST_ID.fullmatch(name) else None
    try:
        return PageLink(thread=check_thread_id(name))
    except UsageError:
        return None


class Proxy(msgspec.Struct, frozen=True):
    """A proxy that is trusted to say who makes a request, and from which address.

    Args:
        addresses: the addresses of the proxy.
        header: the header with the person's name; "" if people log in with tokens.
    """

    addresses: frozenset[str] = frozenset()
    header: str = ""


class Serving(msgspec.Struct, frozen=True):
    """Settings of the web server.

    Args:
        command: returns the program of a session and its arguments, given what it opens.
        environment: returns its environment variables, given the person's name.
        host, port: where to listen; port 0 takes a free one.
        public_url: the address that browsers use; "" for `host` and `port`.
        sessions: how many processes there may be.
        each: how many of them one person may have; 0 for all.
        patience: seconds that a request may take to arrive.
    """

    command: Callable[[PageLink], Sequence[str]]
    environment: Callable[[str], Mapping[str, str]]
    host: str
    port: int
    public_url: str = ""
    sessions: int = 20
    each: int = 0
    patience: float = PATIENCE


class WebServer:
    """Serves the app until it is closed.

    Args:
        tokens: the people who may log in; None if a proxy says who makes a request.
    """

    def __init__(self, serving: Serving, tokens: KnownTokens | None, proxy: Proxy | None = None) -> None:
        self._serving = serving
        self._proxy = proxy or Proxy()
        self._logins = Logins(tokens) if tokens is not None else None
        self._attempts = Attempts()
        self._slots = asyncio.Semaphore(serving.sessions)
        self._slots_by_person: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._ending: Counter[str] = Counter()
        self._sockets: set[web.WebSocketResponse] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._downloads = Downloads()
        self._files = pages.static_files()
        self._connections: Connections | None = None
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.port = serving.port

    async def start(self) -> None:
        """Start to listen.

        Raises:
            UsageError: the address can't be listened at.
        """
        application = web.Application(
            middlewares=[self._guard], client_max_size=_LOGIN_BODY, handler_args={"access_log": None}
        )
        application.add_routes(
            [
                web.get("/", self._page),
                web.get("/{kind:thread|request}/{name:[^/]+}", self._page),
                web.get("/session", self._session),
                web.get("/session/{kind:thread|request}/{name:[^/]+}", self._session),
                web.post("/login", self._log_in),
                web.post("/logout", self._log_out),
                web.get("/static/{name}", self._file),
                web.get("/download/{key}", self._download),
            ]
        )
        application.on_response_prepare.append(self._add_headers)
        self._runner = web.AppRunner(application, access_log=None, logger=_http_log())
        await self._runner.setup()
        assert self._runner.server is not None
        self._connections = Connections(self._runner.server, self._proxy.addresses, self._serving.patience)
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._connections, self._serving.host, self._serving.port
            )
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._serving.host}:{self._serving.port}"
            raise UsageError(f"can't listen at {where}: {error.strerror}", "give another --port") from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every session and stop listening."""
        if self._server is not None:
            self._server.close()
        for socket in tuple(self._sockets):
            await socket.close(code=1001, message=b"the server stops")
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._runner is not None:
            await self._runner.cleanup()

    # Who makes a request

    @property
    def origin(self) -> str:
        """The address that browsers use, as an origin."""
        if self._serving.public_url:
            return self._serving.public_url
        host = f"[{self._serving.host}]" if ":" in self._serving.host else self._serving.host
        return f"http://{host}:{self.port}"

    def _origin_of(self, request: web.Request) -> str:
        """Return the origin of this server's pages under the host name that a request uses.

        Raises:
            HTTPException: the request names another host.
        """
        public = self._serving.public_url
        # A proxy may pass its own port, or none; the name is what keeps other sites' pages out.
        if public and host_of(request.host) == urlsplit(public).hostname:
            return public
        names = {self._serving.host, "localhost", "127.0.0.1", "::1"}
        hosts = {f"[{name}]" if ":" in name else name for name in names}
        known = {f"{host}:{self.port}" for host in hosts} | (hosts if self.port == 80 else set())
        if request.host.lower() not in known:
            raise web.HTTPMisdirectedRequest(text="this web server has another host name")
        return public or origin_of(f"http://{request.host}")

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests with another host name or from other sites' pages; time the connections."""
        assert self._connections is not None
        transport = request.transport
        self._connections.request_received(transport)
        try:
            origin = self._origin_of(request)
            given = [_normal(origin) for origin in request.headers.getall("Origin", [])]
            needed = request.method != "GET" or request.path.startswith("/session")
            if given not in ([], [origin]) or (needed and not given):
                raise web.HTTPForbidden(text="the request comes from another site's page")
            return await handler(request)
        finally:
            self._connections.response_sent(transport)

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        try:
            origin = self._origin_of(request)
        except web.HTTPException:
            origin = self.origin
        socket = origin.replace("http", "ws", 1)
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = _POLICY.format(socket=socket)

    def _address(self, request: web.Request) -> str:
        """Return the address that a request comes from; a trusted proxy names that of its client."""
        address = address_of(request.transport)
        if address in self._proxy.addresses:
            forwarded = request.headers.getall("X-Forwarded-For", [])
            return forwarded[-1].rpartition(",")[2].strip() or address if forwarded else address
        return address

    @property
    def _cookie(self) -> str:
        """The name of the cookie, with the port, since browsers send a cookie to all ports of a host."""
        return "__Host-hitl-tui" if self._is_secure else f"hitl-tui-{self.port}"

    @property
    def _is_secure(self) -> bool:
        return self._serving.public_url.startswith("https:")

    def _name(self, request: web.Request) -> str:
        """Return the name of the person who makes a request; "" if unknown.

        Raises:
            HTTPException: the request did not come through the proxy.
        """
        if self._logins is not None:
            login = self._login(request)
            return login.name if login is not None else ""
        if address_of(request.transport) not in self._proxy.addresses:
            raise web.HTTPForbidden(text="this web server can only be used through its proxy")
        names = request.headers.getall(self._proxy.header, [])
        try:
            return check_name(names[0]) if len(names) == 1 else ""
        except UsageError:
            return ""

    def _login(self, request: web.Request) -> Login | None:
        assert self._logins is not None
        cookie = request.cookies.get(self._cookie, "")
        return self._logins.of(cookie) if cookie else None

    # Pages

    async def _page(self, request: web.Request) -> web.StreamResponse:
        link = self._link(request)
        name = self._name(request)
        if not name and "token" in request.query:
            token = request.query["token"]
            # A page of another site could send people here with its author's token; they would then decide in
            # the author's name. So only a link that a person opened themselves logs in at once.
            confirm = request.headers.get("Sec-Fetch-Site") not in ("none", "same-origin")
            return self._enter(request, token, link.path, confirm=confirm)
        if request.query_string:
            raise web.HTTPSeeOther(link.path)
        if not name:
            if self._logins is None:
                raise web.HTTPForbidden(text="the proxy did not send your name")
            # Browsers send no strict cookie with a link from another site: load the page again, from here.
            if request.headers.get("Sec-Fetch-Site") == "cross-site":
                return _html(pages.again_page(link.path))
            return _html(pages.login_page(link.path), status=401)
        socket = f"{self._origin_of(request).replace('http', 'ws', 1)}/session{link.path.rstrip('/')}"
        return _html(pages.terminal_page(link.thread or "hitl-tui", socket))

    def _link(self, request: web.Request) -> PageLink:
        link = link_of(request.match_info.get("kind", ""), request.match_info.get("name", ""))
        if link is None:
            raise web.HTTPNotFound(text="no such page")
        return link

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        if self._logins is None:
            raise web.HTTPNotFound(text="people log in at the proxy")
        try:
            async with asyncio.timeout(self._serving.patience):
                form = await request.post()
        except TimeoutError:
            raise web.HTTPRequestTimeout(text="the token did not come in time") from None
        except (ValueError, web.RequestPayloadError):
            raise web.HTTPBadRequest(text="this is not a form") from None
        token, to = form.get("token", ""), form.get("to", "/")
        if not isinstance(token, str) or not isinstance(to, str):
            raise web.HTTPBadRequest(text="the token is not text")
        return self._enter(request, token.strip(), _own_path(to))

    def _enter(
        self, request: web.Request, token: str, to: str, *, confirm: bool = False
    ) -> web.StreamResponse:
        """Log a person in and open the page that they wanted.

        Args:
            confirm: first ask them whether they are the owner of the token.
        """
        if self._logins is None:
            raise web.HTTPSeeOther(to)
        address = self._address(request)
        if wait := self._attempts.wait(address):
            seconds = int(wait) + 1
            page = pages.login_page(to, f"too many attempts: wait {seconds} seconds")
            return _html(page, status=429, headers={"Retry-After": str(seconds)})
        name = self._logins.name_of(token) if 0 < len(token) <= LONGEST_TOKEN else None
        if name is not None and confirm:
            return _html(pages.confirm_page(name, token, to))
        cookie = self._logins.log_in(token) if name is not None else None
        if cookie is None:
            self._attempts.failed(address)
            log.warning("a login from %s failed", address)
            return _html(pages.login_page(to, "unknown token"), status=401)
        response = web.HTTPSeeOther(to)
        response.set_cookie(
            self._cookie, cookie, max_age=int(LASTS), path="/", httponly=True, samesite="Strict",
            secure=self._is_secure,
        )  # fmt: skip
        raise response

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        if self._logins is not None:
            self._logins.log_out(request.cookies.get(self._cookie, ""))
        response = web.HTTPSeeOther("/")
        response.del_cookie(self._cookie, path="/", httponly=True, samesite="Strict", secure=self._is_secure)
        raise response

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file = self._files.get(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound(text="no such file")
        return web.Response(body=file[0], content_type=file[1])

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """Send a file that the app offers to this person, once."""
        name, key = self._name(request), request.match_info["key"]
        download = self._downloads.take(name, key) if name else None
        if download is None:
            raise web.HTTPNotFound(text="no such file")
        file_name = re.sub(r"[^\w.-]", "-", download.name, flags=re.ASCII)
        # It is saved and never shown: a script in it could use our pages.
        return web.Response(
            body=download.data,
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
        )

    # Sessions

    async def _session(self, request: web.Request) -> web.StreamResponse:
        name = self._name(request)
        if not name:
            raise web.HTTPUnauthorized(text="log in first")
        login = self._login(request) if self._logins is not None else None
        link = self._link(request)
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT, max_msg_size=_LONGEST_MESSAGE, compress=False)
        if not socket.can_prepare(request).ok:
            raise web.HTTPBadRequest(text="this is not a websocket")
        size = tuple(
            _side(request.query.get(side, ""), usual) for side, usual in (("width", 80), ("height", 24))
        )
        await socket.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._sockets.add(socket)
        try:
            async with self._slot(name) as refusal:
                if refusal:
                    await _last_words(socket, refusal)
                else:
                    await self._serve(socket, name, login, link, (size[0], size[1]))
        finally:
            self._sockets.discard(socket)
            self._tasks.discard(task)
            await socket.close()
        return socket

    @asynccontextmanager
    async def _slot(self, name: str) -> AsyncIterator[str]:
        """Reserve a process for a person, waiting for one that is about to end; yield why not, or ""."""
        each = self._serving.each or self._serving.sessions
        own = self._slots_by_person.setdefault(name, asyncio.Semaphore(each))
        if own.locked() and not self._ending[name] and each < self._serving.sessions:
            yield f"You have {each} sessions open, the most that one person may have. Close one first."
        elif self._slots.locked() and not self._ending.total():
            yield f"All {self._serving.sessions} sessions are in use. Try again later."
        else:
            async with own, self._slots:
                yield ""

    async def _serve(
        self,
        socket: web.WebSocketResponse,
        name: str,
        login: Login | None,
        link: PageLink,
        size: tuple[int, int],
    ) -> None:
        async def open_url(url: str) -> None:
            if urlsplit(url).scheme in ("http", "https"):
                await _send(socket, socket.send_str(_message("open_url", {"url": url, "new_tab": True})))

        async def deliver(download: Download) -> None:
            key = self._downloads.offer(name, download)
            await _send(socket, socket.send_str(_message("deliver_file_start", key)))

        async def paint(data: bytes) -> None:
            await _send(socket, socket.send_bytes(data))

        serving = self._serving
        session = PageSession(serving.command(link), serving.environment(name), paint, open_url, deliver)
        await session.start(*size)
        log.info("%s opened a session at %s", name, link.path)
        running = asyncio.create_task(self._show_until_exit(session, socket))
        allowed = asyncio.create_task(self._end_with_login(socket, login))
        try:
            await _forward_input(socket, session)
        finally:
            for task in (running, allowed):
                task.cancel()
            await asyncio.gather(running, allowed, return_exceptions=True)
            self._ending[name] += 1
            try:
                await asyncio.shield(session.end())
            finally:
                self._ending[name] -= 1

    async def _show_until_exit(self, session: PageSession, socket: web.WebSocketResponse) -> None:
        """Show the app's screen until it exits, and then its last output."""
        try:
            output = await session.run()
        except HitlError as error:
            output = str(error)
        await _last_words(socket, output)

    async def _end_with_login(self, socket: web.WebSocketResponse, login: Login | None) -> None:
        while login is None or self._logins is None or self._logins.is_valid(login):  # noqa: ASYNC110  a change of
            await asyncio.sleep(_CHECK_LOGIN_EVERY)  # the file gives no event
        await _last_words(socket, "Your login has ended.")


async def _forward_input(socket: web.WebSocketResponse, session: PageSession) -> None:
    """Forward the page's messages to the app until the page closes; close it after an invalid message."""
    async for message in socket:
        if message.type != WSMsgType.TEXT:
            break
        try:
            kind, *rest = msgspec.convert(json.loads(message.data), list[Any])
            if kind == "stdin":
                await session.type(msgspec.convert(rest[0], str))
            elif kind == "resize":
                size = msgspec.convert(rest[0], dict[str, int])
                await session.resize(_clamped(size["width"]), _clamped(size["height"]))
            elif kind in ("focus", "blur"):
                await session.focus(has=kind == "focus")
            elif kind == "ping":
                await _send(socket, socket.send_str(_message("pong", rest[0])))
            else:
                raise ValueError(kind)
        except (msgspec.MsgspecError, ValueError, LookupError, RecursionError):
            await socket.close(code=1003)


def _http_log() -> logging.Logger:
    """Return the logger for aiohttp, which gets one line for a malformed request, without its long text."""
    http = log.getChild("http")
    if _shortened not in http.filters:
        http.addFilter(_shortened)
    return http


def _shortened(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.msg, record.exc_info = f"malformed request: {type(error).__name__}: {record.msg}", None
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True


def _message(kind: str, data: object) -> str:
    return msgspec.json.encode([kind, data]).decode()


async def _send(socket: web.WebSocketResponse, sending: Awaitable[object]) -> None:
    """Send; close the socket of a page that is gone or does not read."""
    try:
        async with asyncio.timeout(4 * _HEARTBEAT):
            await sending
    except (ConnectionError, RuntimeError, TimeoutError):
        with suppress(ConnectionError):
            await socket.close(code=1001)


async def _last_words(socket: web.WebSocketResponse, text: str) -> None:
    """Leave the app's screen, show a text, and close the socket."""
    if text and not socket.closed:
        lines = text.replace("\n", "\r\n")
        await _send(
            socket,
            socket.send_bytes(f"\x1b[?1049l\x1b[?1003l\x1b[?25l\x1b[2J\x1b[H\r\n  {lines}\r\n".encode()),
        )
    await socket.close()


def _html(text: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status, headers=headers)


def _own_path(to: str) -> str:
    """Return a path if it is one of ours, else the path of the list."""
    match = _LINK.fullmatch(to)
    return to if match is not None and "\\" not in to and to.isprintable() else "/"


def _side(text: str, usual: int) -> int:
    return _clamped(int(text)) if text.isascii() and text.isdigit() and len(text) < 6 else usual


def _clamped(side: int) -> int:
    least, most = _SIDES
    return min(max(side, least), most)


def session_environment(name: str) -> dict[str, str]:
    """Return the environment of a person's session: that of this process, with the person's name."""
    return {**os.environ, "HITL_TUI_REVIEWER": name}


def _normal(origin: str) -> str:
    """Return an `Origin` header in the form of ours; unchanged if it names no web server."""
    try:
        return origin_of(origin)
    except ValueError:
        return origin
