"""Signed decisions on the command line, in lines and on the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import Gate, GateChoice, GraphRunner
from hitl_tui.config import config_path, default_store, load_settings
from hitl_tui.stores import Checkpointer, open_store
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.support.flows import review_loop
from tests.support.keys import allow, needs_ssh, new_key
from tests.support.program import APP
from tests.support.spec import spec
from tests.support.terminal import Terminal
from tests.ui.real import answer, asked, real

pytestmark = [spec("11"), needs_ssh]

SIGNED = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
ship = Gate("check", title="Ship it?", signed=True, choices=[GateChoice("approve", "ship")])
graph = (
    StateGraph({"n": Channel(0, schema=int)}, name="signed")
    .add_node("check", lambda state: {"n": 1}).add_edge(START, "check").add_edge("check", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[ship])
)
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("keys")
    for who in ("ann", "bob"):
        new_key(place / who)
    allow(place / "allowed", ann=place / "ann")
    allow(place / "others", bob=place / "bob")
    return place


@pytest.fixture
def waiting(app: App, tmp_path: Path) -> App:
    """A thread `s` that waits for a signed answer."""
    (tmp_path / "signed.py").write_text(SIGNED)
    app.expect(3, "run", str(tmp_path / "signed.py"), "--headless", "--thread", "s")
    return app


@pytest.mark.slow
def test_an_unsigned_answer_is_refused_in_words_and_a_signed_one_is_checked(
    waiting: App, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = waiting.expect(0, "show", "s").out
    assert "an answer must be signed" in output
    assert "you have no signing key" in output
    (request,) = waiting.expect(0, "show", "s", "--json").document["standing"]["pending"]
    assert request["signed"] is True
    refused = waiting.expect(4, "approve", "s", "--as", "ann")
    assert "needs a signed decision" in refused.err
    assert "HITL_TUI_SIGNING_KEY" in refused.err
    monkeypatch.setenv("HITL_TUI_SIGNING_KEY", str(keys / "ann"))
    assert "your decision is signed with ann\n" in waiting.expect(0, "show", "s").out
    waiting.expect(0, "approve", "s", "--as", "ann")
    assert "signed with SHA256:" in waiting.expect(0, "log", "s").out
    (decided,) = [
        one for one in waiting.expect(0, "log", "s", "--json").document["decisions"] if one["signature"]
    ]
    assert decided["decision"] == "answer"
    assert (
        "answer at step 1 by ann: signed by ann (SHA256:"
        in waiting.expect(0, "verify", "s", "--signers", str(keys / "allowed")).out
    )
    found = waiting.expect(1, "verify", "s", "--signers", str(keys / "others"), "--json").document
    assert [one["signature"] for one in found["decisions"]] == ["unknown"]
    assert [one["kind"] for one in found["mismatches"]] == ["signature"]
    assert waiting.expect(0, "verify", "s", "--json").document["decisions"] is None
    assert "can't be read" in waiting.expect(2, "verify", "s", "--signers", str(keys / "none")).err


@pytest.mark.slow
def test_a_key_that_can_not_sign_decides_nothing(
    waiting: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HITL_TUI_SIGNING_KEY", str(new_key(tmp_path / "locked", "a phrase")))
    refused = waiting.expect(1, "approve", "s", "--as", "ann")
    assert "The decision could not be signed" in refused.err
    assert "ssh-add" in refused.err
    assert waiting.expect(0, "show", "s", "--json").document["standing"]["pending"]
    assert "ssh-add" in waiting.expect(1, "doctor").out.replace("\n", " ")


def test_the_key_is_a_setting_that_doctor_tries(
    app: App, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_settings().signing_key is None
    monkeypatch.setenv("HITL_TUI_SIGNING_KEY", str(keys / "ann"))
    row = next(
        one for one in app.expect(0, "config", "--json").document["config"] if one["name"] == "signing_key"
    )
    assert (row["value"], row["origin"]) == (str(keys / "ann"), "HITL_TUI_SIGNING_KEY")
    assert "signs (SHA256:" in app("doctor").out.replace("\n", " ")
    monkeypatch.setenv("HITL_TUI_SIGNING_KEY", "id_ed25519")
    assert "must be the whole path" in app.expect(2, "config").err


@pytest.mark.slow
def test_plain_text_mode_says_that_a_signature_is_needed_and_accepts_a_signed_answer(
    waiting: App, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talker(waiting, monkeypatch)
    result = talk("d\na\nq\n", "resume", "s", "--plain")
    assert "you have no signing key" in result.out.replace("\n", " ")
    monkeypatch.setenv("HITL_TUI_SIGNING_KEY", str(keys / "ann"))
    result = talk("d\napprove\n\nq\n", "resume", "s", "--plain", "--as", "ann")
    assert "Your decision is signed with" in result.out.replace("\n", " ")
    store = open_store(default_store())
    signed = [entry.kind for entry in store.ledger("s") if entry.signature]
    store.close()
    assert signed == ["answer"], result.out


def _gated(store: Checkpointer) -> GraphRunner:
    choices = [GateChoice("accept", "accept", "a"), GateChoice("approve", "ok", "o")]
    return review_loop(store, interrupt_after=[Gate("check", title="Good?", signed=True, choices=choices)])


@pytest.mark.slow
async def test_the_card_says_that_a_signature_is_wanted_and_what_signs(keys: Path) -> None:
    async with real(_gated) as it:
        await it.press("c")
        await asked(it, "it must be signed, and you have no signing key")
        await answer(it, "a")
        await it.shows("needs a signed decision")


def test_an_answer_on_the_card_is_signed_by_the_key_of_the_config(
    app: App, keys: Path, tmp_path: Path
) -> None:
    (tmp_path / "signed.py").write_text(SIGNED)
    config = config_path()
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'signing_key = "{keys / "ann"}"\n')
    argv = [*APP, "run", str(tmp_path / "signed.py"), "--thread", "s", "--as", "ann"]
    with Terminal(argv) as terminal:
        terminal.wait_for("READY")
        terminal.press("c")
        terminal.wait_for("your decision is signed with")
        terminal.press_until("enter", "send it now")
        terminal.press("enter")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    assert (
        "answer at step 1 by ann: signed by ann"
        in app.expect(0, "verify", "s", "--signers", str(keys / "allowed")).out
    )


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
