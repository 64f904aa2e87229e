"""Taint, private values and contracts on screen, in a real terminal."""

from __future__ import annotations

import json
from typing import Any

from tests.support.places import SAMPLES
from tests.support.program import APP, call
from tests.support.spec import spec
from tests.support.terminal import Terminal

pytestmark = spec("8")


def started(sample: str) -> None:
    """A thread `t` of a sample, as far as it runs by itself."""
    call("run", str(SAMPLES / sample), "--headless", "--thread", "t")


def decisions() -> list[dict[str, Any]]:
    """The ledger of the thread `t`."""
    found: list[dict[str, Any]] = json.loads(call("log", "t", "--json").stdout)["decisions"]
    return found


def test_a_tainted_channel_is_marked_explained_and_declassified_with_a_reason() -> None:
    started("webpage.py")
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        terminal.wait_for("tainted")
        terminal.press("M")
        terminal.wait_for("write wrote mail through summary")
        terminal.press("M")
        terminal.wait_for("Channels at step 3")
        terminal.press("Y")
        terminal.wait_for("trust it from now on")
        terminal.press("enter")
        terminal.wait_for("nothing was typed")
        terminal.send(b"read it")
        terminal.press("enter")
        terminal.wait_for("Channels at step 4")
        terminal.press("q")
        assert terminal.wait_exit() == 3
    assert "read it" in call("log", "t").stdout


def test_a_late_reason_is_asked_again_with_its_text() -> None:
    started("webpage.py")
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("Y")
        terminal.wait_for("trust it from now on")
        terminal.send(b"read every word")
        terminal.wait_for("read every word")
        assert call("update-state", "t", "reader=bob@example.com").returncode == 0
        terminal.wait_for("Channels at step 4")
        terminal.press("enter")
        terminal.wait_for("is at step 4")
        terminal.wait_for("read every word")
        terminal.press("enter")
        terminal.wait_for("Channels at step 5")
        terminal.press("q")
        assert terminal.wait_exit() == 3
    assert [one["note"] for one in decisions() if one["decision"] == "declassify"] == ["read every word"]


def test_a_private_value_is_revealed_after_a_confirmation_and_hidden_again() -> None:
    started("private.py")
    with Terminal([*APP, "resume", "t"]) as terminal:
        assert "Ada L." not in terminal.wait_for("[private]")
        terminal.press("k", "k", "k")
        terminal.press("o")
        terminal.wait_for("That you looked is logged")
        terminal.press("r")
        terminal.wait_for("Ada L.")
        terminal.press("j")
        terminal.wait_gone("Ada L.")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    assert [(one["decision"], one["data"]) for one in decisions()] == [("reveal", {"channel": "patient"})]


def test_the_contract_of_the_node_is_a_page() -> None:
    started("webpage.py")
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("i")
        terminal.wait_for("approve: a human must agree first")
        terminal.wait_for("step 3: read")
        for line in (
            "may read        reader, summary", "may write       mail",
            "step 3: read    reader, summary", "step 3: wrote   mail",
            "may read        mail", "may write       sent",
        ):  # fmt: skip
            terminal.wait_for(line)
        terminal.press("i")
        terminal.wait_for("Channels at step 3")
        terminal.press("q")
