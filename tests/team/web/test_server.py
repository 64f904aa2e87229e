"""Who may see a page and what a page may do: logins, cookies, hosts, origins, limits; one process a page."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hitl_tui.team.web import page_session as web_session
from hitl_tui.team.web import pages, web_server
from hitl_tui.team.web.tokens import OneToken, TokenFile
from hitl_tui.team.web.web_server import Proxy
from tests.support.web import painted, serving


def size(width: int = 100, height: int = 30) -> dict[str, str]:
    return {"width": str(width), "height": str(height)}


async def opened(client: aiohttp.ClientSession, path: str = "/session") -> tuple[Any, list[Any]]:
    """A session, and what its process says of itself: who, what it opens, its size, its id."""
    socket = await client.ws_connect(path, params=size())
    message = await socket.receive(30)
    return socket, json.loads(message.data)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(30):
        while is_alive(pid):  # noqa: ASYNC110  another process tells nobody here
            await asyncio.sleep(0.01)


async def test_without_a_login_there_is_a_form_and_no_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = desk.client()
        async with client.get("/thread/a%20b") as answer:
            assert answer.status == 401
            assert 'name="to" value="/thread/a%20b"' in await answer.text()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await client.ws_connect("/session", params=size())
        wrong = await desk.log_in(client, "hitl_wrong")
        assert (wrong.status, "Set-Cookie" in wrong.headers) == (401, False)
        assert "unknown token" in await wrong.text()


async def test_a_login_sets_a_strict_cookie_and_opens_the_wanted_page(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        answer = await desk.log_in(desk.client(), desk.tokens["ann"], "/thread/r1")
        assert (answer.status, answer.headers["Location"]) == (303, "/thread/r1")
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith(f"hitl-tui-{desk.server.port}=")
        assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
        assert "Secure" not in cookie, "there is no TLS here"


async def test_behind_tls_the_cookie_is_for_tls_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, public_url="https://review.example.org") as desk:
        headers = {"Host": "review.example.org", "Origin": "https://review.example.org"}
        form = {"token": desk.tokens["ann"]}
        async with desk.client().post("/login", data=form, headers=headers, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-hitl-tui=")
        assert "Secure" in cookie.split("; ")
        async with desk.client().get("/", headers=headers) as answer:
            assert "wss://review.example.org;" in answer.headers["Content-Security-Policy"]
        async with desk.client().get("/", headers={**headers, "Origin": desk.url}) as answer:
            assert answer.status == 403, "pages are those of the public address alone"


async def test_the_public_address_is_the_same_in_all_ways_of_writing_it(tmp_path: Path) -> None:
    async with serving(tmp_path, public_url="https://review.example.org") as desk:
        origin = "https://Review.Example.org:443"
        for host in ("Review.Example.org", "review.example.org:443", "review.example.org:8080"):
            async with desk.client().get("/", headers={"Host": host, "Origin": origin}) as answer:
                assert answer.status == 401, host
        async with desk.client().get("/", headers={"Host": "evil.example"}) as answer:
            assert answer.status == 421


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example/", "/\\evil.example", "/thread/a\r\nX: y", "/login", ""]
)
async def test_a_login_leads_to_no_other_place(to: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        answer = await desk.log_in(desk.client(), desk.tokens["ann"], to)
        assert answer.headers["Location"] == "/"


async def test_the_link_of_a_lone_owner_logs_in_once_opened(tmp_path: Path) -> None:
    tokens = OneToken("me")
    async with serving(tmp_path, tokens=tokens) as desk:
        client = desk.client()
        by_hand = {"Sec-Fetch-Site": "none"}
        async with client.get("/", params={"token": tokens.token}, headers=by_hand) as answer:
            assert (answer.status, answer.url.query_string) == (200, "")
        socket, (name, *_) = await opened(client)
        assert name == "me"
        await socket.close()


@pytest.mark.parametrize("site", ["cross-site", "same-site", None, "odd"])
async def test_a_link_of_another_site_logs_nobody_in_as_its_author_unasked(
    site: str | None, tmp_path: Path
) -> None:
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    async with serving(tmp_path) as desk:
        client, theirs = desk.client(), {"token": desk.tokens["bob"]}
        async with client.get("/thread/r1", params=theirs, headers=headers) as answer:
            text = await answer.text()
            assert (answer.status, "Set-Cookie" in answer.headers) == (200, False)
        assert "logs you in as <strong>bob</strong>" in text
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await opened(client)
        form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', text))
        async with client.post("/login", data=form, headers={"Origin": "https://evil.example"}) as answer:
            assert answer.status == 403
        answer = await client.post("/login", data=form, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (303, "/thread/r1")


async def test_a_token_that_nobody_has_is_refused_by_a_link_too_and_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = desk.client()
        for status in [401] * 10 + [429]:
            async with client.get("/", params={"token": "hitl_wrong"}) as answer:
                assert (answer.status, "hitl_wrong" in await answer.text()) == (status, False)


@pytest.mark.slow
async def test_one_person_leaves_sessions_to_the_others(tmp_path: Path) -> None:
    async with serving(tmp_path, sessions=3, each=2) as desk:
        ann, bob = await desk.as_person("ann"), await desk.as_person("bob")
        again = await desk.as_person("ann")  # from another browser
        sockets = [(await opened(who))[0] for who in (ann, again)]
        for who in (ann, again):
            assert b"You have 2 sessions open" in await painted(await who.ws_connect("/session"))
        socket, (name, *_) = await opened(bob)
        assert name == "bob"
        await sockets.pop().close()
        sockets.append((await opened(ann))[0])  # a page that is loaded again finds its own place
        for each in (socket, *sockets):
            await each.close()


async def test_requests_from_other_sites_pages_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        for origin in ("https://evil.example", "null", f"http://127.0.0.1:{desk.server.port + 1}", ""):
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await client.ws_connect("/session", headers={"Origin": origin})
            async with client.post("/login", data={"token": "x"}, headers={"Origin": origin}) as answer:
                assert answer.status == 403
        async with client.get("/", headers={"Origin": "https://evil.example"}) as answer:
            assert answer.status == 403
        async with aiohttp.ClientSession(desk.url, cookie_jar=client.cookie_jar) as bare:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await bare.ws_connect("/session")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1:1", "localhost", "127.0.0.1.evil.example:{port}"]
)
async def test_requests_with_another_host_name_are_refused(host: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        name = host.format(port=desk.server.port)
        for path in ("/", "/static/page.css", "/session", "/login"):
            async with client.get(path, headers={"Host": name, "Origin": f"http://{name}"}) as answer:
                assert answer.status == 421


async def test_a_session_gets_its_person_its_thread_and_its_size_and_ends_with_its_page(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person("bob")
        socket, greeting = await opened(client, "/session/thread/r1")
        assert greeting[:3] == ["bob", ["--", "r1"], "100x30"]
        await socket.send_str(json.dumps(["stdin", "é\ud800"]))
        await painted(socket, "Dé?".encode())
        await socket.send_str(json.dumps(["resize", {"width": 10**9, "height": -1}]))
        await painted(socket, b'{"type": "resize", "width": 1000, "height": 1}')
        await socket.send_str(json.dumps(["blur"]))
        await painted(socket, b'{"type": "blur"}')
        await socket.send_str(json.dumps(["ping", "7"]))
        assert await socket.receive_json() == ["pong", "7"]
        assert is_alive(greeting[3])
        await socket.close()
        await until_gone(greeting[3])


async def test_an_unresponsive_page_ends_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "_HEARTBEAT", 0.2)
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        socket = await client.ws_connect("/session", params=size(), autoping=False)
        greeting = json.loads((await socket.receive(30)).data)
        assert is_alive(greeting[3])
        await until_gone(greeting[3])  # nothing is closed: a machine that went to sleep says nothing


@pytest.mark.parametrize(
    ("path", "opens"),
    [
        ("/session/thread/--help", ["--help"]),
        ("/session/thread/-x%20$(id)", ["-x $(id)"]),
        ("/session/thread/..%2F..%2Fetc%2Fpasswd", ["../../etc/passwd"]),
        ("/session/request/0553166a3c95", ["0553166a3c95"]),
    ],
)
async def test_a_link_can_not_inject_options(path: str, opens: list[str], tmp_path: Path) -> None:
    from yarl import URL

    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        socket = await client.ws_connect(URL(path, encoded=True))
        greeting = json.loads((await socket.receive(30)).data)
        assert greeting[1] == ["--", *opens]
        await socket.close()


@pytest.mark.parametrize(
    "path", ["/thread/%00", "/thread/" + "a" * 201, "/request/--x%20y", "/thread/a/b", "/x"]
)
async def test_an_invalid_link_is_not_found(path: str, tmp_path: Path) -> None:
    from yarl import URL

    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        async with client.get(URL(path, encoded=True)) as answer:
            assert answer.status == 404


async def test_a_program_that_does_not_exit_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_session, "_GRACE", 0.05)
    monkeypatch.setattr(web_session, "_HURRY", 0.05)
    async with serving(tmp_path) as desk:
        socket, greeting = await opened(await desk.as_person())
        await socket.send_str('["stdin", "hang"]')
        await painted(socket, b"hangs")
        await socket.close()
        await until_gone(greeting[3])


async def test_what_a_program_says_at_its_end_is_shown_and_harmless(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        socket, _ = await opened(await desk.as_person())
        await socket.send_str('["stdin", "die"]')
        seen = await painted(socket)
        assert "␛[31mthe last words".encode() in seen


@pytest.mark.slow
async def test_sessions_are_limited(tmp_path: Path) -> None:
    async with serving(tmp_path, sessions=2) as desk:
        client = await desk.as_person()
        first, _ = await opened(client)
        second, _ = await opened(client)
        third = await client.ws_connect("/session")
        assert b"All 2 sessions are in use" in await painted(third)
        await second.close()
        again, _ = await opened(client)  # a page that is loaded again finds its own place
        for socket in (first, again):
            await socket.close()


@pytest.mark.slow
async def test_removing_a_token_ends_logins_and_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "_CHECK_LOGIN_EVERY", 0.02)
    async with serving(tmp_path) as desk:
        ann, bob = await desk.as_person("ann"), await desk.as_person("bob")
        (hers, _), (his, _) = await opened(ann), await opened(bob)
        TokenFile(tmp_path / "tokens.json").remove("ann")
        assert b"Your login has ended" in await painted(hers)
        async with ann.get("/") as answer:
            assert answer.status == 401
        await his.send_str('["stdin", "still here"]')
        await painted(his, b"still here")
        await his.close()


async def test_the_cookie_of_an_ended_login_opens_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        cookies = {cookie.key: cookie.value for cookie in client.cookie_jar}
        async with client.post("/logout", allow_redirects=False) as answer:
            assert answer.status == 303
        async with aiohttp.ClientSession(desk.url, cookies=cookies, headers={"Origin": desk.url}) as thief:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
                await thief.ws_connect("/session")


async def test_only_the_trusted_proxy_names_the_user(tmp_path: Path) -> None:
    proxy = Proxy(frozenset({"127.0.0.1"}), "X-Forwarded-User")
    async with serving(tmp_path, proxy=proxy) as desk:
        client = desk.client()
        client.headers["X-Forwarded-User"] = "carla"
        socket, greeting = await opened(client)
        assert greeting[0] == "carla"
        await socket.close()
        for names in ([], ["a", "b"], ["a\u202eb"], ["x" * 101]):
            headers = [("Origin", desk.url), *(("X-Forwarded-User", name) for name in names)]
            async with aiohttp.ClientSession(desk.url, headers=headers) as odd, odd.get("/") as answer:
                assert answer.status == 403
        around = desk.client("127.0.0.2")
        async with around.get("/", headers={"X-Forwarded-User": "carla"}) as answer:
            assert answer.status == 403


async def test_a_file_goes_to_its_person_once_and_is_never_shown(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        ann, bob = await desk.as_person("ann"), await desk.as_person("bob")
        socket, _ = await opened(ann)
        await socket.send_str('["stdin", "give"]')
        kind, key = await socket.receive_json()
        assert kind == "deliver_file_start"
        async with bob.get(f"/download/{key}") as answer:
            assert answer.status == 404
        async with ann.get(f"/download/{key}") as answer:
            assert await answer.read() == b"<svg>"
            assert answer.headers["Content-Disposition"] == 'attachment; filename="a-picture-.svg"'
            assert answer.headers["Content-Type"] == "application/octet-stream"
        async with ann.get(f"/download/{key}") as answer:
            assert answer.status == 404
        await socket.close()


async def test_every_answer_forbids_other_hosts_frames_and_guesses_of_types(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        for path in ("/", "/static/page.js", "/nothing"):
            async with client.get(path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "script-src 'self';" in policy
                assert "frame-ancestors 'none'" in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Server"] == "hitl-tui"


def test_pages_and_styles_name_no_other_host() -> None:
    texts = [pages.terminal_page("t", "ws://127.0.0.1/session"), pages.login_page("/"), pages.again_page("/")]
    texts += [data.decode() for data, kind in pages.static_files().values() if kind == "text/css"]
    places = [
        place for text in texts for place in re.findall(r"""(?:src=|href=|url\()["']?([^"')\s]+)""", text)
    ]
    assert places
    assert {place for place in places if not place.startswith(("/static/", "data:,"))} == set()


async def test_a_link_of_another_site_finds_the_login(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = desk.client()
        async with client.get("/thread/r1", headers={"Sec-Fetch-Site": "cross-site"}) as answer:
            assert answer.status == 200
            assert 'content="0; url=/thread/r1"' in await answer.text()


@pytest.mark.slow
async def test_stopping_the_web_server_ends_every_process(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        client = await desk.as_person()
        sessions = [await opened(client) for _ in range(3)]
        pids = [greeting[3] for _, greeting in sessions]
        assert all(map(is_alive, pids))
    assert not any(map(is_alive, pids))
