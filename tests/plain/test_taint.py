"""Taint, private values, checks and agents in a session in lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from hitl_tui.config import load_settings
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.support.places import SAMPLES

Said = Callable[..., str]


@pytest.fixture
def said(app: App, talk: Talker) -> Said:
    """What a session says to lines that are typed, on a thread `t` of a sample that ran by itself."""

    def typed(sample: str, *lines: str, given: tuple[str, ...] = ()) -> str:
        app("run", str(SAMPLES / sample), "--headless", "--thread", "t", *given)
        return talk("\n".join([*lines, "q", ""]), "resume", "t", "--plain").out

    return typed


def test_why_a_channel_is_tainted(said: Said) -> None:
    out = said("webpage.py", "y", "y page", "y nothing")
    assert "write wrote mail through summary" in out
    assert "page  from" in out
    assert "there is no channel 'nothing'" in out


@pytest.mark.slow
def test_a_channel_is_declassified_only_with_a_reason(said: Said, app: App) -> None:
    out = said("webpage.py", "Y page", "", "Y page", "read it twice", "y page", "Y page")
    assert "Nothing was done." in out
    assert "page is trusted from step 4 on; what was made from it before stays untrusted." in out
    assert "page is not tainted." in out
    assert "channel 'page' is not tainted" in out
    assert "read it twice" in app.expect(0, "log", "t").out


def test_a_private_value_is_shown_after_a_yes_and_the_ledger_keeps_it(said: Said, app: App) -> None:
    out = said("private.py", "r patient", "no", "r patient", "yes", "r risk")
    assert "Nothing was done." in out
    assert out.count("Ada L.") == 1
    assert "channel 'risk' is not private" in out
    kinds = [one["decision"] for one in app.expect(0, "log", "t", "--json").document["decisions"]]
    assert kinds.count("reveal") == 1


@pytest.mark.slow
def test_the_log_is_verified_re_reduced_and_replayed(said: Said) -> None:
    out = said("webpage.py", "V", "V strict", "V replay", "V other")
    assert out.count("Nothing is wrong: ") == 3
    assert "the results of 3 nodes served" in out
    assert "there is no check 'other'" in out


@pytest.mark.slow
def test_findings_are_reported_with_their_meaning(said: Said) -> None:
    said("webpage.py")
    with sqlite3.connect(load_settings().store.removeprefix("sqlite:///")) as file:
        file.execute("UPDATE record SET attempt = 9")
    file.close()
    out = said("webpage.py", "V")
    assert "This record was changed after it was written" in out


@pytest.mark.slow
def test_agents_are_shown_changed_and_made_to_forget(said: Said) -> None:
    typed = (
        "a",
        "T worker model=demo/advisor",
        "a",
        "clear-turns advisor",
        "a advisor",
        "T nobody model=x",
    )
    out = said("advisor.py", *typed, given=("--input", "task=Explain what a closure is."))
    assert "worker: demo/advisor" in out
    assert "worker: model “demo/advisor”, from the next step on." in out
    assert "changed: model" in out
    assert "advisor remembers nothing in this process." in out
    assert "These turns are the agent's own memory, in this process alone." in out
    assert "Its turns:\n  | no turns" in out
    assert "nobody" in out
