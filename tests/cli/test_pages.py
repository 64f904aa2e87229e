"""`export --format html|markdown`: pages about a thread, whatever was written in it."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.support.commands import App

FENCES = "```\n````\n~~~\n# Approved by the board\n<b>bold</b> [x](javascript:alert(1)) ![y](http://x/y.png)"
NASTY = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)></style></title></svg>\"'&amp;"
    f"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e {FENCES}"
)
SECRET = "the-secret-value"
GRAPH = f"""
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
NASTY = {NASTY!r}
choices = [GateChoice("approve", NASTY), GateChoice("revise", "no", text="required")]
gate = Gate("node", title=NASTY, subject="text", payload=lambda state: {{"verdict": NASTY}}, choices=choices)
channels = {{
    "text": Channel("", description=NASTY),
    "list": Channel([], reducer="append"),
    "secret": Channel("", visibility="private"),
}}
graph = (
    StateGraph(channels, name="</title><script>alert(2)</script>`x`")
    .add_node("node", lambda state: {{"text": NASTY, "list": NASTY, "secret": {SECRET!r}}})
    .add_edge(START, "node").add_edge("node", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
)
"""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


class Page(HTMLParser):
    """What a browser would make of a page: its elements and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


@pytest.fixture
def hostile(app: App, tmp_path: Path) -> App:
    """The thread `h`, hostile in every text, with a private channel, its request answered."""
    path = tmp_path / "hostile.py"
    path.write_text(GRAPH)
    app.expect(3, "run", str(path), "--headless", "--thread", "h")
    app.expect(0, "update-state", "h", f"text={NASTY} x", "--note", NASTY)
    app.expect(0, "update-state", "h", f"secret={SECRET}-2", "--note", "quietly")
    app.expect(0, "approve", "h", "--note", NASTY, "--run")
    return app


@pytest.mark.slow
def test_a_page_has_no_element_but_its_own_and_loads_nothing(hostile: App) -> None:
    text = hostile.expect(0, "export", "h", "--format", "html").out
    page = Page(text)
    ours = "html head meta title style body h1 h2 h3 dl dt dd p strong span section article pre blockquote"
    ours += " svg rect path g text ul li"
    assert page.tags <= set(ours.split())
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    policy = re.search(r'Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "url(" not in text
    assert not CONTROL.search(text)


STEERS = "\u202e\u2066\u200b\u00ad\U000e0041\ufeff"
"""Turns the direction of text, or is seen by nobody."""
NAMED = f"""
from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
graph = StateGraph({{"text": Channel({STEERS!r})}}, name="graph" + {STEERS!r})
graph = graph.add_node("node", lambda state: {{}}).add_edge(START, "node").add_edge("node", END)
graph = graph.compile(checkpointer=MemoryCheckpointer())
"""


@pytest.mark.slow
def test_names_and_values_in_an_export_are_escaped(app: App, tmp_path: Path) -> None:
    name, graph = f"thread{STEERS}</title>", tmp_path / "named.py"
    graph.write_text(NAMED)
    app.expect(0, "run", str(graph), "--headless", "--thread", name)
    exported: dict[str, str] = {}
    for form in ("html", "markdown", "svg", "asciicast"):
        app.expect(0, "export", name, "--format", form, "-o", str(tmp_path / form))
        exported[form] = (tmp_path / form).read_text("utf-8")
    for form in ("text", "mermaid", "dot", "svg"):
        exported[f"graph as {form}"] = app.expect(0, "graph", str(graph), "--format", form).out
    for form, text in exported.items():
        seen = [mark for mark in STEERS if mark in text or json.dumps(mark)[1:-1] in text]
        assert not seen, form
        assert "⟨U+202E⟩" in text or form.startswith("graph"), form


@pytest.mark.slow
def test_markdown_from_values_is_escaped(hostile: App) -> None:
    text = hostile.expect(0, "export", "h", "--format", "markdown").out
    tokens = MarkdownIt("commonmark").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if "board" in heading and "`" not in heading]
    assert not CONTROL.search(text)


@pytest.mark.parametrize("form", ["html", "markdown"])
@pytest.mark.slow
def test_pages_have_no_private_values_or_their_hashes(hostile: App, form: str) -> None:
    text = hostile.expect(0, "export", "h", "--format", form).out
    assert SECRET not in text
    assert "sha256:" not in text
    assert "[private]" in text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_page_says_who_decided_what_when_and_why(app: App, form: str) -> None:
    app.expect(3, "run", "advisor", "--headless", "--thread", "a", "--input", "task=Hills")
    app.expect(0, "revise", "a", "--note", "shorter, please", "--reviewer", "ann")
    text = app.expect(0, "export", "a", "--format", form).out
    for words in ("ann", "shorter, please", "revise", "UTC", "sha256:", "The log agrees with itself"):
        assert words in text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_page_has_the_graph_and_the_changes_of_every_step(app: App, form: str) -> None:
    app.expect(3, "run", "advisor", "--headless", "--thread", "a", "--input", "task=Hills")
    app.expect(3, "revise", "a", "--note", "shorter, please", "--run")
    text = app.expect(0, "export", "a", "--format", form).out
    for step, who in ((0, "input"), (1, "worker"), (2, "advisor"), (4, "worker"), (5, "advisor")):
        assert re.search(rf"{step} · .*{who}", text), step
    draft = app.expect(0, "diff", "a@1", "a@4", "--json").document
    new = next(row for row in draft["channels"] if row["channel"] == "latest_draft")["after"]
    assert new.split(".")[0] in html.unescape(text)
    ways = re.search("<svg.*</svg>" if form == "html" else "```(.*?)```", text, re.DOTALL)
    assert ways is not None
    assert all(
        word in ways[0]
        for word in ("worker", "advisor", "revise", "approved", "×2" if form == "html" else "")
    )
    assert form == "markdown" or "@media print" in text


@pytest.mark.slow
def test_a_page_of_a_log_that_was_changed_says_what_is_wrong(app: App, tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    store = ("--store", str(file))
    app.expect(3, "run", "sequential", "--headless", "--thread", "a", "--input", "task=Hills", *store)
    app.expect(0, "cancel", "a", *store)
    with sqlite3.connect(file) as database:
        database.execute(
            "UPDATE ledger SET actor = 'somebody else' WHERE rowid = (SELECT min(rowid) FROM ledger)"
        )
    text = app.expect(0, "export", "a", "--format", "html", *store).out
    assert "does not agree" in text


def test_older_steps_can_be_left_out(app: App) -> None:
    app.expect(3, "run", "advisor", "--headless", "--thread", "a", "--input", "task=Hills")
    text = app.expect(0, "export", "a", "--format", "markdown", "--limit", "1").out
    assert "Steps 0 to 1 are left out." in text
    assert "### 2 ·" in text
    assert "### 1 ·" not in text


def test_a_page_goes_to_a_file_for_its_owner_alone(app: App, tmp_path: Path) -> None:
    app.expect(3, "run", "advisor", "--headless", "--thread", "a", "--input", "task=Hills")
    file = tmp_path / "a.html"
    document = app.expect(0, "export", "a", "--format", "html", "-o", str(file), "--json").document
    assert document["bytes"] == file.stat().st_size
    assert file.stat().st_mode & 0o077 == 0
    app.expect(2, "export", "a", "--format", "html", "-o", str(file))
    app.expect(2, "export", "a", "--format", "html", "--private", "-o", str(tmp_path / "b.html"))
