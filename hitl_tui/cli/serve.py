"""`serve`: the app in a browser, and the tokens by which people log in there."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click
import msgspec

from hitl_tui.cli.options import reviewer_option, store_option
from hitl_tui.cli.output import say, table
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.stores import Checkpointer
    from hitl_tui.team.web.tokens import KnownTokens, TokenFile
    from hitl_tui.team.web.web_server import PageLink, Proxy, WebServer

_READ_ONLY: Final = "this server shows threads to an audience (--read-only)"
_TERMINAL_WAYS: Final = ("terminal", "title", "before")
_file_option = click.option(
    "--auth", "file", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE",
    help="The file with the hashes of the tokens.",
)  # fmt: skip


@click.group(invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@click.option(
    "--auth", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="People log in with the tokens in this file; `hitl-tui serve token add` creates one.",
)  # fmt: skip
@click.option("--auth-header", metavar="NAME", help="The header in which a trusted proxy names the person.")
@click.option("--trusted-proxy", "proxies", metavar="IP", multiple=True, help="The address of that proxy.")
@click.option("--public-url", metavar="URL", help="The public address, if there is a proxy.")
@click.option("--read-only", is_flag=True, help="For an audience: every command is refused.")
@click.option(
    "--sessions", type=click.IntRange(1, 1000), default=20, show_default=True,
    help="How many sessions at once; each is a process.",
)  # fmt: skip
@click.option(
    "--sessions-each", type=click.IntRange(1, 1000), metavar="N",
    help="How many sessions of one person; a quarter of --sessions by default.",
)  # fmt: skip
@store_option
@reviewer_option
@click.pass_context
def serve(
    ctx: click.Context,
    *,
    host: str,
    port: int,
    auth: Path | None,
    auth_header: str | None,
    proxies: tuple[str, ...],
    public_url: str | None,
    read_only: bool,
    sessions: int,
    sessions_each: int | None,
    store: str | None,
    reviewer: str | None,
) -> ExitCode | None:
    """Serve the app to browsers; each page is a session.

    Without --auth or --auth-header it serves only this machine, by a link that is new each time; anyone
    with the link acts under your name. /thread/ID and /request/ID open there. ctrl+c or a signal ends it.

        hitl-tui serve
        hitl-tui serve token add ann --auth tokens.json
        hitl-tui serve --host 10.0.0.5 --auth tokens.json --sessions 10
    """
    if ctx.invoked_subcommand is not None:
        return None
    try:
        import textual_serve  # noqa: F401  it comes with aiohttp
    except ImportError as error:
        raise UsageError("pages for browsers take textual-serve", "install hitl-tui[web]") from error
    from hitl_tui.cli.storage import open_existing, open_for_writing
    from hitl_tui.config import load_settings

    settings = load_settings({"store": store, "reviewer": reviewer})
    proxy = _proxy(auth_header, proxies)
    if auth is not None and proxy.header:
        raise UsageError("--auth and --auth-header don't go together", "give one of them")
    if not (auth is not None or proxy.header or _is_loopback(host)):
        raise UsageError(
            f"{host} is reached from other machines, and nobody would be asked who they are",
            "give --auth FILE, or --auth-header and --trusted-proxy",
        )
    if settings.store == "memory:":
        raise UsageError(
            "each page is a process of its own, and memory: is not shared", "name another --store"
        )
    (partial(open_existing, part="none") if read_only else open_for_writing)(settings).close()
    _ask_role(settings)
    own = auth is None and not proxy.header
    server, link = _server(
        settings, host, port, _public(public_url, host), _tokens(auth, settings, own=own), proxy,
        sessions=(sessions, sessions if own else sessions_each or max(sessions // 4, 1)),
        own=own, read_only=read_only,
    )  # fmt: skip
    asyncio.run(_serve(server, link))
    return ExitCode.DONE


def _ask_role(settings: Settings) -> None:
    """At the first start, ask on the terminal whose view the pages show; keep it in the configuration."""
    from hitl_tui.cli.opening import may_ask
    from hitl_tui.config import ENV_PREFIX, REVIEWER, ROLES, config_path, keep_setting
    from hitl_tui.drivers.node_streams import interruptible, own_input

    if settings.origins["role"] != "default" or not may_ask():
        return
    say(
        "Who uses the pages? A reviewer sees texts, changes and decisions; a developer also sees the graph,",
        "reducers and the debugger. F2 switches between both views.",
        f"Type {' or '.join(ROLES)} (enter: {REVIEWER}):",
        err=True,
    )
    with interruptible():
        try:
            typed = own_input("").strip().lower() or REVIEWER
        except (EOFError, KeyboardInterrupt, UnicodeDecodeError):
            return
    role = next((known for known in ROLES if known.startswith(typed)), "")
    if not role:
        say(f"{typed!r} is neither of them; you are asked again at the next start", err=True)
        return
    os.environ[f"{ENV_PREFIX}ROLE"] = role
    try:
        keep_setting("role", role)
    except OSError as error:
        say(f"{config_path()} can't be written ({error.strerror}); you are asked again", err=True)
    else:
        say(f"{config_path()} has it now: role = {role!r}", err=True)


def _server(  # noqa: PLR0917
    settings: Settings,
    host: str,
    port: int,
    public_url: str,
    tokens: KnownTokens | None,
    proxy: Proxy,
    *,
    sessions: tuple[int, int],
    own: bool,
    read_only: bool,
) -> tuple[WebServer, str]:
    """Return the server, and what its link has after its address.

    Args:
        sessions: how many in total, and how many of one person.
    """
    from hitl_tui.team.web.tokens import OneToken
    from hitl_tui.team.web.web_server import Serving, WebServer, session_environment

    flags = [*([] if own else ["--guest"]), *(["--read-only"] if read_only else [])]

    def command(link: PageLink) -> Sequence[str]:
        """Return a command; nothing in a link can be an option: after `--` it names a thread or a request."""
        what = ["--by-request"] if link.request else []
        named = [name for name in (link.thread, link.request) if name]
        return [sys.executable, "-P", "-m", "hitl_tui", "serve", "page", *flags, *what, "--", *named]

    def environment(name: str) -> dict[str, str]:
        return {**session_environment(name), "HITL_TUI_STORE": settings.store}

    serving = Serving(command, environment, host, port, public_url, *sessions)
    return WebServer(serving, tokens, proxy), f"?token={tokens.token}" if isinstance(tokens, OneToken) else ""


async def _serve(server: WebServer, link: str) -> None:
    from hitl_tui.cli.logs import start_log

    start_log("aiohttp", "asyncio")
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await server.start()
    try:
        say(f"Serving at {server.origin}/{link}", "ctrl+c ends it, with every session.")
        await ended.wait()
    finally:
        await server.close()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _public(url: str | None, host: str) -> str:
    """Return the origin of an address, "" for none."""
    if url is None:
        if host in ("0.0.0.0", "::"):
            raise UsageError(f"{host} can't be part of a link", "give the public address with --public-url")
        return ""
    from hitl_tui.team.web.origins import origin_of

    try:
        origin, parts = origin_of(url), urlsplit(url)
    except ValueError:  # browsers send a name and a password in no header that this server compares
        raise UsageError(
            f"{url!r} is not the address of a web server", "as in --public-url https://review.example.org"
        ) from None
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(
            f"{url!r} names a path: the pages can't be served below a path of a host",
            f"give the server a name or a port of its own, as in --public-url {origin}",
        )
    return origin


def _proxy(header: str | None, addresses: tuple[str, ...]) -> Proxy:
    from hitl_tui.team.web.web_server import Proxy

    if header is not None and not addresses:
        raise UsageError("anybody could send that header", "say with --trusted-proxy where it comes from")
    for address in addresses:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise UsageError(f"{address!r} is not an IP address", "as in --trusted-proxy 127.0.0.1") from None
    if header is not None and not header.replace("-", "").isalnum():
        raise UsageError(f"{header!r} is not a header name", "as in --auth-header X-Forwarded-User")
    return Proxy(frozenset(addresses), header or "")


def _tokens(file: Path | None, settings: Settings, *, own: bool) -> KnownTokens | None:
    from hitl_tui.team.web.tokens import OneToken

    if own:
        return OneToken(settings.reviewer)
    if file is None:
        return None
    tokens = _token_file(file)
    if not tokens.entries():
        raise UsageError(f"{file} has no token", f"hitl-tui serve token add NAME --auth {file}")
    return tokens


def _token_file(path: Path) -> TokenFile:
    from hitl_tui.team.web.tokens import TokenFile

    # If the file is a link, its target is written, and the link stays.
    return TokenFile(Path(os.path.realpath(path)))


@serve.command(hidden=True)
@click.argument("name", default="")
@click.option("--by-request", is_flag=True)
@click.option("--guest", is_flag=True)
@click.option("--read-only", is_flag=True)
def page(*, name: str, by_request: bool, guest: bool, read_only: bool) -> int:
    """Show a page of `serve`: the list of threads, or one of them.

    A guest is a person other than the owner of the account. Their decisions are not signed with the owner's
    key, they send no notifications of the owner's, and they can't trust graphs for the owner.
    """
    from hitl_tui.cli.opening import Target, thread_to_open
    from hitl_tui.cli.screen import show
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    settings = load_settings()
    if guest:
        notify_here = {key: value for key, value in settings.notify.items() if key in _TERMINAL_WAYS}
        settings = msgspec.structs.replace(settings, signing_key=None, notify=notify_here)

    def choose(opened: Checkpointer) -> Target:
        return Target(_thread_of(opened, name) if by_request else thread_to_open(opened, name))

    return show(
        settings,
        partial(open_existing, part="waiting" if by_request else "none"),
        choose,
        list_threads=not name,
        request=name if by_request else "",
        guest=guest,
        read_only=_READ_ONLY if read_only else "",
    )


def _thread_of(store: Checkpointer, request: str) -> str:
    """Return the thread that waits with a request."""
    from hitl_tui.view.queue import MOST

    for waiting in store.waiting(MOST):
        if any(asked.id == request for asked in waiting.pending):
            return waiting.thread.info.thread_id
    raise UsageError(f"nothing waits as request {request!r}", "it was answered, or never asked")


@serve.group()
def token() -> None:
    """Create, revoke and list login tokens."""


@token.command()
@click.argument("name")
@_file_option
def add(*, name: str, file: Path) -> None:
    """Create a person's token; it is shown only once."""
    say(_token_file(file).add(name))


@token.command()
@click.argument("name")
@_file_option
def remove(*, name: str, file: Path) -> None:
    """Revoke a person's token; their open sessions end."""
    _token_file(file).remove(name)


@token.command(name="list")
@_file_option
def list_tokens(*, file: Path) -> None:
    """List who has a token, and since when."""
    entries = _token_file(file).entries()
    since = [time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.added / 1e6)) for entry in entries]
    say(*table([(entry.name, at) for entry, at in zip(entries, since, strict=True)]))
