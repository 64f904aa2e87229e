"""What every store must do with who is at the questions of its threads."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.threads import Presence
from hitl_tui.errors import AnswerRefused, UnknownThread
from hitl_tui.stores import Checkpointer
from tests.stores.log_writer import NOW, Writer
from tests.stores.test_contract_threads import GONE
from tests.support.spec import spec

pytestmark = spec("10")


class TestPresence:
    """Who is at a question of a thread, beside its log."""

    def presence(self, writer: Writer, actor: str, *, until: int = NOW + 60, **changes: Any) -> Presence:
        lease = msgspec.structs.replace(
            writer.store.new_lease(NOW), expires_at=until, **changes.pop("process", {})
        )
        known = Presence(
            "r1", b"h1", actor, f"{actor}@box", NOW, until, claims=False, lasts=False, lease=lease
        )
        return msgspec.structs.replace(known, **changes)

    def claim(self, writer: Writer, actor: str, **changes: Any) -> Presence:
        return self.presence(writer, actor, **{"claims": True, **changes})

    def names(self, writer: Writer, now: int = NOW) -> list[str]:
        return [at.actor for at in writer.store.attending("t", now)]

    def test_several_viewers_are_listed_oldest_first_and_leave(self, writer: Writer) -> None:
        ann, bob = self.presence(writer, "ann", since=NOW + 2), self.presence(writer, "bob", since=NOW + 1)
        for look in (ann, bob):
            writer.store.attend("t", look, NOW)
        assert writer.store.attending("t", NOW) == (bob, ann)
        writer.store.leave("t", bob.lease.token)
        writer.store.leave("t", "another")
        writer.store.leave("none", ann.lease.token)
        assert writer.store.attending("t", NOW) == (ann,)

    def test_ends_at_its_time_unless_it_is_renewed(self, writer: Writer) -> None:
        look = self.presence(writer, "ann")
        writer.store.attend("t", look, NOW)
        writer.store.attend("t", msgspec.structs.replace(look, until=NOW + 90), NOW)
        assert (self.names(writer, NOW + 89), self.names(writer, NOW + 90)) == (["ann"], [])

    def test_ends_with_its_process_unless_it_lasts(self, writer: Writer) -> None:
        dead = {"pid": GONE}
        writer.store.attend("t", self.presence(writer, "ann", process=dead), NOW)
        writer.store.attend("t", self.claim(writer, "bob", process=dead), NOW)
        assert self.names(writer) == []
        writer.store.attend("t", self.claim(writer, "cleo", process=dead, lasts=True), NOW)
        assert self.names(writer) == ["cleo"]

    def test_of_a_process_elsewhere_its_time_alone_counts(self, writer: Writer) -> None:
        writer.store.attend("t", self.presence(writer, "ann", process={"boot": "another", "pid": GONE}), NOW)
        assert (self.names(writer, NOW + 59), self.names(writer, NOW + 60)) == (["ann"], [])

    def test_a_claim_keeps_others_from_claiming_while_it_lasts(self, writer: Writer) -> None:
        writer.store.attend("t", self.claim(writer, "ann", until=NOW + 300_000_000), NOW)
        with pytest.raises(AnswerRefused, match=r"ann \(ann@box\) has claimed it, for 5 min still"):
            writer.store.attend("t", self.claim(writer, "bob"), NOW)
        with pytest.raises(AnswerRefused, match="ann"):
            writer.store.attend("t", self.claim(writer, "bob"), NOW, "cleo")
        writer.store.attend("t", self.presence(writer, "bob"), NOW)
        assert self.names(writer) == ["ann", "bob"]
        late = NOW + 300_000_000
        writer.store.attend("t", self.claim(writer, "bob", until=late + 60), late)
        assert self.names(writer, late) == ["bob"]

    def test_a_claim_is_taken_over_by_name_and_renewed_by_its_own(self, writer: Writer) -> None:
        writer.store.attend("t", self.claim(writer, "ann"), NOW)
        again = self.claim(writer, "ann")
        writer.store.attend("t", again, NOW)
        assert writer.store.attending("t", NOW) == (again,)
        over = self.claim(writer, "bob")
        writer.store.attend("t", over, NOW, "ann")
        assert writer.store.attending("t", NOW) == (over,)

    @pytest.mark.parametrize(
        "other", [{"request": "r2"}, {"request_hash": b"h2"}], ids=["another", "changed"]
    )
    def test_a_claim_is_of_one_question_as_it_was(self, writer: Writer, other: dict[str, Any]) -> None:
        writer.store.attend("t", self.claim(writer, "ann"), NOW)
        writer.store.attend("t", self.claim(writer, "bob", **other), NOW)
        assert self.names(writer) == ["ann", "bob"]

    def test_is_in_the_list_and_in_no_version(self, writer: Writer) -> None:
        Writer(writer.store, "other")
        before = writer.store.cursor("t")
        now = time.time_ns() // 1000
        look = self.presence(writer, "ann", until=now + 60_000_000)
        writer.store.attend("t", look, now)
        attending = {row.info.thread_id: row.attending for row in writer.store.threads()}
        assert attending == {"t": (look,), "other": ()}
        summary = writer.store.summary("t")
        assert summary is not None
        assert summary.attending == (look,)
        assert writer.store.cursor("t") == before
        assert list(writer.store.faults("t")) == []

    def test_needs_a_thread(self, store: Checkpointer, writer: Writer) -> None:
        with pytest.raises(UnknownThread):
            store.attend("none", self.presence(writer, "ann"), NOW)
        assert store.attending("none", NOW) == ()
