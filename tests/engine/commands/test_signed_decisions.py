"""Decisions that are signed with a person's key, and what `verify` says of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import (
    END,
    START,
    AllowedSigners,
    AnswerRefused,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    MemoryCheckpointer,
    SigningFailed,
    SshSigner,
    StateGraph,
    UsageError,
)
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.thread.hashes import ledger_hash, signed_words
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support import nested
from tests.support.flows import check_log, ledger_of, pending_id, review_loop
from tests.support.keys import allow, needs_ssh, new_key
from tests.support.spec import spec

pytestmark = [spec("12"), needs_ssh]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of ann, bob and a stranger; `allowed` knows the first two."""
    place = tmp_path_factory.mktemp("keys")
    for who in ("ann", "bob", "stranger"):
        new_key(place / who)
    allow(place / "allowed", **{"ann@example.com": place / "ann", "bob": place / "bob"})
    return place


def at_gate(store: Checkpointer, key: Path | None = None, **more: Any) -> GraphRunner:
    choices = [GateChoice("accept", "accept"), GateChoice("approve", "ok", values={"verdict": "approved"})]
    gate = Gate("check", title="verdict", choices=choices, **more)
    runner = review_loop(store, interrupt_after=[gate], signer=SshSigner(key) if key else None)
    runner.invoke({}, thread_id="t")
    return runner


def approved(store: Checkpointer, key: Path | None, actor: str | None = "ann", **more: Any) -> GraphRunner:
    runner = at_gate(store, key, **more)
    runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor=actor, note="fine")
    return runner


def verdicts(runner: GraphRunner, keys: Path, thread: str = "t") -> list[tuple[str, str, str]]:
    """Each decision: its kind, what its signature is, who has signed."""
    found = runner.verify(thread, signers=AllowedSigners(keys / "allowed")).decisions
    assert found is not None
    return [(one.kind, one.found.verdict, one.found.signer) for one in found]


@pytest.mark.slow
def test_a_decision_is_signed_and_verify_names_the_signer(store: Checkpointer, keys: Path) -> None:
    runner = at_gate(store, keys / "ann")
    runner.update_state("t", {"draft": "better"}, actor="ann", note="clearer")
    runner.answer("t", pending_id(runner, "t"), "approve", step=3, actor="ann")
    check_log(runner, "t")
    report = runner.verify("t", signers=AllowedSigners(keys / "allowed"))
    assert report.ok
    assert verdicts(runner, keys) == [
        ("update_state", "good", "ann@example.com"), ("answer", "good", "ann@example.com"),
    ]  # fmt: skip
    assert runner.verify("t").decisions is None


@pytest.mark.slow
def test_a_signature_covers_the_whole_decision(store: Checkpointer, keys: Path) -> None:
    approved(store, keys / "ann")
    (entry,) = ledger_of(store, "t", "answer")
    signers = AllowedSigners(keys / "allowed")
    check = lambda one: signers.check(signed_words(one), one.signature, one.actor, one.at).verdict  # noqa: E731
    assert check(entry) == "good"
    others: dict[str, Any] = {
        "thread_id": "u", "n": 9, "kind": "vote", "step": 1, "request_id": "x", "actor": "bob", "note": "no",
        "seen": b"x", "data": {"answer": "accept"}, "at": entry.at + 1, "prev_hash": b"x",
        "pending_hash": b"x", "request_hash": b"x", "made_by": "policy", "account": "root@other",
    }  # fmt: skip
    assert {*others, "hash", "signature", "cursor_hash", "login"} == set(LedgerEntry.__struct_fields__)
    for name, value in others.items():
        assert check(msgspec.structs.replace(entry, **{name: value})) == "wrong", name
    assert ledger_hash(msgspec.structs.replace(entry, signature="")) != entry.hash


def test_an_unsigned_decision_is_reported_but_no_finding(store: Checkpointer, keys: Path) -> None:
    runner = approved(store, None)
    assert runner.verify("t", signers=AllowedSigners(keys / "allowed")).ok
    assert verdicts(runner, keys) == [("answer", "unsigned", "")]


@pytest.mark.parametrize(
    ("key", "field", "actual"), [("stranger", "key", "SHA256:"), ("bob", "signer", "bob")]
)
def test_an_unknown_or_wrong_key_is_a_finding(
    store: Checkpointer, keys: Path, key: str, field: str, actual: str
) -> None:
    runner = approved(store, keys / key)
    (found,) = runner.verify("t", signers=AllowedSigners(keys / "allowed")).mismatches
    assert (found.kind, found.field) == ("signature", field)
    assert found.actual.startswith(actual)


class _Copied:
    """Gives the signature of another decision."""

    key = "copied"

    def __init__(self, signature: str) -> None:
        self._signature = signature

    def sign(self, words: bytes) -> str:
        return self._signature


@pytest.mark.parametrize("signature", ["copied", "no signature", "-----BEGIN SSH SIGNATURE-----\nAAAA"])
def test_a_signature_of_another_decision_is_a_finding(
    store: Checkpointer, keys: Path, signature: str
) -> None:
    if signature == "copied":
        approved(MemoryCheckpointer(), keys / "ann")
        other = MemoryCheckpointer()
        approved(other, keys / "ann")
        signature = ledger_of(other, "t", "answer")[0].signature
    runner = at_gate(store)
    runner.signer = _Copied(signature)
    runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
    assert verdicts(runner, keys) == [("answer", "wrong", "")]
    assert not runner.verify("t", signers=AllowedSigners(keys / "allowed")).ok


def test_a_gate_that_requires_a_signature_refuses_an_unsigned_answer(store: Checkpointer, keys: Path) -> None:
    runner = at_gate(store, signed=True)
    wanted = pending_id(runner, "t")
    with pytest.raises(AnswerRefused, match=r"needs a signed decision.*signing_key"):
        runner.answer("t", wanted, "approve", step=2, actor="ann")
    assert [entry.kind for entry in store.ledger("t")] == ["request", "refused"]
    runner.signer = SshSigner(keys / "ann")
    with pytest.raises(AnswerRefused, match="by name"):
        runner.answer("t", wanted, "approve", step=2)
    assert runner.answer("t", wanted, "approve", step=2, actor="ann") == 3
    assert runner.verify("t").ok
    assert verdicts(runner, keys) == [("answer", "good", "ann@example.com")]


def test_an_unsigned_answer_at_a_gate_that_requires_a_signature_is_found_without_keys(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = at_gate(store, signed=True)
    runner.signer = _Copied("")
    runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
    (found,) = runner.verify("t").mismatches
    assert (found.kind, found.actual) == ("signature", "not signed")


def test_an_interrupt_can_want_a_signature(store: Checkpointer, keys: Path) -> None:
    def ask(state: Any, config: Any) -> dict[str, Any]:
        return {"n": config.interrupt({"kind": "ask", "title": "How many?", "signed": True})}

    runner = (
        StateGraph({"n": Channel(0)}, name="asking")
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .add_edge("ask", END)
        .compile(checkpointer=store)
    )
    runner.invoke({}, thread_id="t")
    with pytest.raises(AnswerRefused, match="signed"):
        runner.answer("t", pending_id(runner, "t"), 3, step=0, actor="ann")
    runner.signer = SshSigner(keys / "ann")
    runner.answer("t", pending_id(runner, "t"), 3, step=0, actor="ann")
    assert verdicts(runner, keys) == [("answer", "good", "ann@example.com")]


def test_an_answer_to_a_thread_inside_is_signed_in_both(keys: Path) -> None:
    store = MemoryCheckpointer()
    runner = nested.team(store)
    runner.signer = SshSigner(keys / "ann")
    asked = runner.invoke({}, thread_id="t").pending[0]
    runner.answer("t", asked.id, "ok", step=asked.step, actor="ann")
    report = runner.verify("t", signers=AllowedSigners(keys / "allowed"))
    assert report.ok
    assert [(one.thread, one.found.verdict) for one in report.decisions or ()] == [
        ("", "good"), (asked.thread, "good"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_fork_and_a_thread_that_was_carried_elsewhere_keep_their_signatures(
    store: Checkpointer, keys: Path
) -> None:
    runner = approved(store, keys / "ann")
    runner.fork("t", 3, "f", actor="ann")
    assert verdicts(runner, keys, "f") == [
        ("answer", "good", "ann@example.com"), ("fork", "good", "ann@example.com"),
    ]  # fmt: skip
    other = MemoryCheckpointer()
    import_thread(other, list(export_thread(store, "t")), "renamed")
    there = review_loop(other)
    assert verdicts(there, keys, "renamed") == [("answer", "good", "ann@example.com")]
    assert there.verify("renamed").ok


@pytest.mark.slow
def test_a_key_with_a_passphrase_and_no_agent_decides_nothing_and_asks_nothing(
    store: Checkpointer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    runner = at_gate(store, new_key(tmp_path / "locked", "a phrase"))
    before = store.cursor("t")
    with pytest.raises(SigningFailed, match="passphrase") as refused:
        runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
    assert "ssh-add" in refused.value.hint
    assert store.cursor("t") == before
    assert [entry.kind for entry in store.ledger("t")] == ["request"]


@pytest.mark.parametrize("named", ["locked", "locked.pub"])
@pytest.mark.integration
def test_a_key_that_the_agent_holds_signs(
    store: Checkpointer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    key = new_key(tmp_path / "locked")
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(tmp_path / "s")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert agent.stdout is not None
        agent.stdout.readline()  # it listens
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "s"))
        subprocess.run(["ssh-add", "-q", str(key)], check=True, env=dict(os.environ))
        lock = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a phrase", "-f", str(key)]
        subprocess.run(lock, check=True, stdout=subprocess.DEVNULL)
        approved(store, tmp_path / named)
        assert ledger_of(store, "t", "answer")[0].signature
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close() if agent.stdout else None


@pytest.mark.parametrize("broken", ["key", "program"])
def test_without_the_key_or_the_program_nothing_is_decided(
    store: Checkpointer, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    runner = at_gate(store, tmp_path / "none" if broken == "key" else keys / "ann")
    if broken == "program":
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SigningFailed, match=r"none signs nothing|there is no ssh-keygen"):
        runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
    assert [entry.kind for entry in store.ledger("t")] == ["request"]


def test_a_key_counts_while_it_was_valid(store: Checkpointer, keys: Path, tmp_path: Path) -> None:
    runner = approved(store, keys / "ann")
    public = (keys / "ann.pub").read_text()
    file = tmp_path / "allowed"
    for until, expected in (("20200101", "unknown"), ("20990101", "good")):
        file.write_text(f'ann valid-before="{until}" {public}')
        (found,) = runner.verify("t", signers=AllowedSigners(file)).decisions or ()
        assert found.found.verdict == expected


def test_a_file_of_signers_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none can't be read"):
        AllowedSigners(tmp_path / "none")
