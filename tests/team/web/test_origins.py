"""One address of a server in all the ways that people, browsers and proxies write it."""

from __future__ import annotations

import pytest

from hitl_tui.team.web.origins import host_of, origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Review.Example.org", "https://review.example.org"),
        ("https://review.example.org:443/", "https://review.example.org"),
        ("HTTP://review.example.org:80", "http://review.example.org"),
        ("https://review.example.org.", "https://review.example.org"),
        ("https://review.example.org:8443", "https://review.example.org:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_has_one_origin_however_it_is_written(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    ["review.example.org", "ftp://a", "https://", "http://a:99999", "http://[::1", "null", "http://u:p@a"],
)
def test_an_address_without_a_web_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (urlsplit's own, too)
        origin_of(url)


def test_a_host_header_is_compared_by_its_name() -> None:
    names = ["Review.Example.org", "review.example.org:8443", "review.example.org."]
    assert {host_of(name) for name in names} == {"review.example.org"}
    assert host_of("bücher.example") == "xn--bcher-kva.example"
    assert host_of("[::1") == host_of("") == ""
