"""Clients that mean harm: floods, half requests, odd bytes; whoever means none is served meanwhile."""

from __future__ import annotations

import asyncio
import json
import resource
from pathlib import Path

import aiohttp
import pytest

from hitl_tui.team.web import connections
from hitl_tui.team.web.logins import FAILURES, Attempts, Logins
from hitl_tui.team.web.tokens import OneToken
from tests.support.web import Desk, painted, serving


async def is_served(desk: Desk) -> bool:
    """Whether somebody with a token, from elsewhere, gets in and is shown the app."""
    client = desk.client("127.0.0.9")
    await desk.log_in(client, desk.tokens["bob"])
    async with client.ws_connect("/session") as socket:
        return b"bob" in await painted(socket, b"bob")


async def raw(desk: Desk, data: bytes, *, whole: bool = True) -> bytes:
    """Send bytes as they are; gives what comes until the server closes, or its head alone."""
    reader, writer = await asyncio.open_connection("127.0.0.1", desk.server.port)
    writer.write(data)
    try:
        async with asyncio.timeout(20):
            return await reader.read() if whole else await reader.readuntil(b"\r\n\r\n")
    except ConnectionError:
        return b""
    finally:
        writer.close()


MALFORMED = {
    "no http": b"\x16\x03\x01" + bytes(range(256)) + b"\r\n\r\n",
    "a long line": b"GET /" + b"\xff" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"\x1b]0;y" * 12_000 + b"\r\n\r\n",
    "a header without a name": b"GET / HTTP/1.1\r\n: y\r\n\r\n",
    "a second request": b"GET /static/page.css HTTP/1.1\r\nHost: {host}\r\n\r\n\x00\x01\r\n\r\n",
    "two lengths": b"POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a chunk of no size": b"POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: "
    b"application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_request_is_at_most_a_line_in_the_log(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO")
    async with serving(tmp_path) as desk:
        reader, writer = await asyncio.open_connection("127.0.0.1", desk.server.port)
        host = f"127.0.0.1:{desk.server.port}".encode()
        writer.write(MALFORMED[kind].replace(b"{host}", host))
        answer = await reader.read()
        writer.close()
        assert b" 400 " in answer
        async with desk.client().get("/") as other:
            assert other.status == 401
    for record in caplog.records:
        assert record.exc_info is None
        assert record.levelname == "INFO"
        assert len(record.getMessage()) < 200
    logged = [record for record in caplog.records if "malformed request" in record.getMessage()]
    assert logged or kind in ("no http", "a second request"), "aiohttp takes these for noise"
    assert capfd.readouterr() == ("", "")


async def test_a_login_request_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = desk.client()
        answer = await desk.log_in(client, "x" * 1_000_000)
        assert answer.status == 413
        form = aiohttp.FormData()
        form.add_field("token", b"x", filename="token")
        async with client.post("/login", data=form) as answer:
            assert answer.status == 400
        assert await is_served(desk)


async def test_a_connection_without_a_request_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, patience=0.2) as desk:
        host = f"Host: 127.0.0.1:{desk.server.port}\r\nOrigin: {desk.url}\r\n"
        post = f"POST /login HTTP/1.1\r\n{host}Content-Type: application/x-www-form-urlencoded\r\n"
        halves = ["", "GET / HT", f"GET / HTTP/1.1\r\n{host}X-Slow: ", f"{post}Content-Length: 50\r\n\r\ntok"]
        ends = await asyncio.gather(*(raw(desk, half.encode()) for half in halves))
        assert ends[:3] == [b"", b"", b""]
        assert b"408" in ends[3]
        # One that has been answered may keep quiet no longer than a new one.
        quiet = await raw(desk, f"GET /static/page.js HTTP/1.1\r\n{host}\r\nGET / HTT".encode())
        assert quiet.count(b"HTTP/1.1") == 1
        assert await is_served(desk)


async def test_a_session_may_be_quiet_for_longer(tmp_path: Path) -> None:
    async with serving(tmp_path, patience=0.1) as desk:
        client = await desk.as_person()
        async with client.ws_connect("/session") as socket:
            await painted(socket, b"ann")
            await asyncio.sleep(0.3)
            await socket.send_str('["stdin", "awake"]')
            await painted(socket, b"awake")


async def test_connections_from_one_address_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_PER_ADDRESS", 5)
    async with serving(tmp_path) as desk:
        held = [await asyncio.open_connection("127.0.0.1", desk.server.port) for _ in range(30)]
        async with asyncio.timeout(20):
            for reader, _ in held[5:]:
                assert await reader.read() == b""
        assert await is_served(desk)
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e%2fserver.py",
        "/static/..%5cserver.py",
        "/static//etc/passwd",
        "/static/page.css%00.py",
        "/download/../../etc/passwd",
    ],
)
async def test_a_path_can_not_leave_the_static_files(path: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{desk.server.port}\r\nConnection: close\r\n\r\n"
        answer = await raw(desk, head.encode())
        assert answer.split()[1] in {b"404", b"400"}
        assert b"aiohttp" not in answer
        assert b"root:" not in answer


@pytest.mark.parametrize(
    "path", ["/thread/a%0d%0aSet-Cookie:%20x=1", "/?to=%0d%0aX-Evil:1", "/request/a%0d%0aX-Evil:%201"]
)
async def test_a_path_can_not_inject_a_header(path: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{desk.server.port}\r\nConnection: close\r\n\r\n"
        answer = (await raw(desk, head.encode())).partition(b"\r\n\r\n")[0].lower()
        assert b"\r\nset-cookie" not in answer
        assert b"\r\nx-evil" not in answer


async def test_a_name_in_a_page_is_text(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        for path in (
            "/thread/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
            '/thread/"%20onload="x',
            "/thread/{title}",
        ):
            async with client.get(path) as answer:
                text = await answer.text()
                assert answer.status == 200
                assert "<script>alert" not in text
                assert 'onload="' not in text


@pytest.mark.slow
async def test_a_thousand_wrong_tokens_keep_nobody_else_out(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = desk.client()
        counts: dict[int, int] = {}
        for number in range(1000):
            answer = await desk.log_in(client, f"hitl_{number}")
            counts[answer.status] = counts.get(answer.status, 0) + 1
        assert counts == {401: FAILURES, 429: 1000 - FAILURES}
        assert 0 < int(answer.headers["Retry-After"]) <= 61
        assert (await desk.log_in(client, desk.tokens["ann"])).status == 429, "nor is a right one tried"
        assert await is_served(desk)


@pytest.mark.slow
def test_a_thousand_addresses_are_counted_each_and_forgotten_in_time() -> None:
    now = 0.0
    attempts = Attempts(lambda: now)
    for _ in range(FAILURES):
        attempts.failed("10.0.0.1")
        attempts.failed("2001:db8::1")
    assert attempts.wait("10.0.0.1") == 60
    assert attempts.wait("2001:db8::ffff"), "a network of 64 bits is one"
    assert not attempts.wait("2001:db8:0:1::1")
    assert not attempts.wait("10.0.0.2")
    now = 61.0
    assert not attempts.wait("10.0.0.1")
    for number in range(20_000):
        attempts.failed(f"10.1.{number // 250}.{number % 250}")
    assert len(attempts._failed) == 10_000


def test_logins_run_out_and_do_not_fill_the_memory() -> None:
    now = 0.0
    tokens = OneToken("me")
    logins = Logins(tokens, lambda: now)
    first = logins.log_in(tokens.token)
    assert first is not None
    login = logins.of(first)
    assert login is not None
    assert login.name == "me"
    now = 12 * 3600.0
    assert logins.of(first) is None
    for _ in range(10_100):
        assert logins.log_in(tokens.token)
    assert len(logins._logins) == 10_000


@pytest.mark.parametrize(
    "text",
    ["", "no json", "{}", "[]", "[[1]]", '["stdin"]', '["stdin", 1]', '["resize", 1]',
     '["resize", {"width": "x"}]', "[" * 100_000, '["resize", {"width": 1e400, "height": 1}]'],
    ids=range(11),
)  # fmt: skip
async def test_an_invalid_message_ends_only_its_session(text: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        async with client.ws_connect("/session") as socket:
            await painted(socket, b"ann")
            await socket.send_str(text)
            await painted(socket)
            assert socket.close_code == 1003
        assert await is_served(desk)


@pytest.mark.slow
async def test_more_than_a_page_ever_sends_ends_the_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        async with client.ws_connect("/session") as socket:
            await painted(socket, b"ann")
            await socket.send_str(json.dumps(["stdin", "x" * 2_000_000]))
            await painted(socket)
            assert socket.close_code == 1009
        async with client.ws_connect("/session") as socket:
            await painted(socket, b"ann")
            await socket.send_bytes(b"bytes are nothing that a page sends")
            await painted(socket)


@pytest.mark.slow
async def test_a_client_that_reads_nothing_blocks_nobody(tmp_path: Path) -> None:
    """What is painted waits in the app's pipe, not in the server's memory."""
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        socket = await client.ws_connect("/session", max_msg_size=0)
        await painted(socket, b"ann")
        transport = socket._conn.transport  # type: ignore[union-attr]
        assert transport is not None
        transport.pause_reading()  # type: ignore[attr-defined]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(30):
            await socket.send_str('["stdin", "flood"]')
        assert await is_served(desk)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000, "90 MB were painted"
        transport.resume_reading()  # type: ignore[attr-defined]
        await socket.close()


async def test_other_methods_and_half_websockets_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        for method, path in (("PUT", "/"), ("DELETE", "/thread/a"), ("POST", "/session"), ("TRACE", "/")):
            async with client.request(method, path) as answer:
                assert answer.status in (404, 405)
        async with client.get("/session") as answer:
            assert answer.status == 400
