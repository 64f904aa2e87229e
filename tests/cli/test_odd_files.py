"""Every command that reads a file, with odd ones: it ends with words, and never as a bug."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hitl_tui.cli.play import Tape
from hitl_tui.config import default_store
from hitl_tui.errors import HitlError
from hitl_tui.loading.graphs import scripts_folder
from hitl_tui.stores import open_store
from hitl_tui.ui.theme import Themes
from tests.support.commands import App, Done
from tests.support.odd_files import PLACES, odd_files
from tests.support.places import SAMPLES

POLICY = b'[[rule]]\nname = "small"\nwhen = "True"\nanswer = "approve"\n'


EMPTY = ("an empty device", "a pipe that nobody writes to")
"""What stands there has nothing in it; some commands take that."""
NONE = ("missing", "a link to nothing")
FINE = {"tokens": NONE, "store": (*NONE, "a directory")}
"""What is as good as a file: without one there are no tokens, and a directory may be a store."""


def problems(done: Done, what: str, path: Path) -> list[str]:
    """A command may refuse a file, and says so in words that can't steer a terminal."""
    wrong = [words for words in ("this is a bug", "hitl-tui: unexpected") if words in done.err]
    if any(ord(char) < 32 and char != "\n" for char in done.err + done.out):
        wrong.append("control characters")
    if done.code not in (0, 1, 2, 3, 4) or (done.code in (1, 2) and not done.err + done.out):
        wrong.append("its code")
    if what in PLACES and what not in EMPTY:
        wrong += ["it is taken"] if done.code == 0 else []
        wrong += [] if path.name[:20] in done.err or "/gone" in done.err else ["no name"]
    return [f"{what}: {', '.join(wrong)}: {done}"[:700]] if wrong else []


def exported(app: App) -> bytes:
    app.expect(0, "approve", "r")
    return app.expect(0, "export", "r").out.encode()


def an_anchor(app: App) -> bytes:
    return app.expect(0, "anchor", "r").out.encode()


def a_database(app: App) -> bytes:
    open_store(default_store()).close()
    return Path(default_store().removeprefix("sqlite:///")).read_bytes()


def pending(app: App) -> str:
    return str(app.expect(0, "show", "r", "--json").document["standing"]["pending"][0]["id"])


COMMANDS: dict[str, tuple[Callable[[App], bytes], str, Sequence[str]]] = {
    "import": (exported, ".jsonl", ("import", "FILE", "--thread", "NEW")),
    "anchors": (an_anchor, ".json", ("verify", "r", "--anchor", "FILE")),
    "signers": (lambda _: b"ann@x ssh-ed25519 AAAA\n", "", ("verify", "r", "--signers", "FILE")),
    "policy": (lambda _: POLICY, ".toml", ("decide", "--policy", "FILE", "--dry-run")),
    "show": (
        lambda _: (scripts_folder() / "closures.toml").read_bytes(), ".toml", ("present", "FILE", "--check"),
    ),
    "graph in TOML": (
        lambda _: (SAMPLES / "review.toml").read_bytes(), ".toml", ("graph", "FILE"),
    ),
    "graph in Python": (lambda _: (SAMPLES / "review.py").read_bytes(), ".py", ("graph", "FILE")),
    "langgraph.json": (lambda _: b'{"graphs": {"a": "./a.py:graph"}}', ".json", ("graph", "FILE")),
    "input": (
        lambda _: b'{"task": "x"}', ".json",
        ("run", "review", "--headless", "--input", "@FILE", "--thread", "NEW"),
    ),
    "edit": (lambda _: b'{"draft": "x"}', ".json", ("update-state", "r", "@FILE")),
    "answer": (
        lambda _: b'"no such answer"', ".json", ("answer", "r", "REQUEST", "--value", "@FILE", "--step", "2"),
    ),
    "tokens": (lambda _: b'{"tokens": []}', ".json", ("serve", "token", "list", "--auth", "FILE")),
    "store": (a_database, ".db", ("threads", "--store", "FILE")),
    "cassette": (
        lambda _: b'{"cassette": 1}\n',
        ".jsonl",
        ("run", "review", "--headless", "--cassette", "FILE", "--thread", "NEW", "--input", "task=x"),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_any_file_gives_an_error_message_instead_of_a_traceback(
    command: str, review: App, tmp_path: Path
) -> None:
    good, suffix, arguments = COMMANDS[command]
    request = pending(review)
    found: list[str] = []
    for number, (what, path) in enumerate(odd_files(tmp_path, good(review), suffix)):
        given = [
            word.replace("FILE", str(path)).replace("REQUEST", request).replace("NEW", f"new-{number}")
            for word in arguments
        ]
        if what not in FINE.get(command, ()):
            found += problems(review(*given), what, path)
    assert found == []


@pytest.mark.slow
def test_any_settings_give_an_error_message_instead_of_a_traceback(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    for what, path in odd_files(tmp_path, b'theme = "light"\n', ".toml"):
        monkeypatch.setenv("HITL_TUI_CONFIG", str(path))
        if what not in NONE:
            found += problems(app("config"), what, path)
    assert found == []


@pytest.mark.slow
def test_any_theme_or_recording_is_read_or_refused(review: App, tmp_path: Path) -> None:
    themes, tapes = tmp_path / "themes", tmp_path / "tapes"
    for folder in (themes, tapes):
        folder.mkdir()
    for _, path in odd_files(themes, b'[colors]\naccent = "#ff0000"\n', ".toml"):
        if path.parent == themes:
            with suppress(HitlError):
                Themes(themes).load(path.stem)
    with closing(open_store(default_store())) as store:
        for _, path in odd_files(tapes, exported(review)):
            if os.path.isfile(path):
                with suppress(HitlError):
                    Tape(path.name, path).copy(store)
