"""Watches a store and notifies a person of what happens; each notifier sends each notice once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.errors import HitlError
from hitl_tui.team.notifiers import NotificationFailed, Notifier
from hitl_tui.team.sent_notices import SentNotices
from hitl_tui.view.notices import (
    ENDS,
    Notice,
    Person,
    asked,
    ended,
    expiring,
    gathered,
    next_deadline,
    words,
)

_MOST = 1000
"""Most waiting threads that are reported."""
_UNKNOWN = 10.0
"""Seconds between looks at a store that doesn't know whether anything was written."""
_MOMENT = 1.0
"""Seconds to wait after a change, so that changes that follow each other are one notice."""
_OWN = 60_000_000
"""Microseconds after a person's decision at the screen in which the end of its thread is no news to them."""
_IDLE = 4
"""The pause after a look is at least this many times as long as the look: others use the store, too."""


class Watch:
    """Looks at a store repeatedly, in the caller's thread, and sends notices.

    Args:
        person: who is notified.
        before: microseconds before a deadline at which a notice is sent.
        encode: turns a notice into the document of `--json`.
        failed: called once for each notifier that fails, and for a store that can't be read.
        counted: called with the number of threads that wait for the person, whenever it changes.
        sees: whether the person has seen a notice's content on screen; such a notice is not sent.
        quiet: count notices at the first look as sent, and do not report threads that end just after the
            person's decision, since the person is at the screen.
        source: names the store in its notices; "" for the store of the session.
    """

    def __init__(
        self,
        store: Store,
        sent: SentNotices,
        notifiers: Sequence[Notifier],
        *,
        person: str,
        before: int,
        encode: Callable[[Notice], bytes],
        failed: Callable[[HitlError], object],
        counted: Callable[[int], object] = lambda number: None,
        sees: Callable[[Notice], bool] = lambda notice: False,
        quiet: bool = False,
        source: str = "",
    ) -> None:
        self._store = store
        self.sent = sent
        self._notifiers = notifiers
        self._person = person
        self._before = before
        self._encode = encode
        self._failed = failed
        self._counted = counted
        self._sees = sees
        self._quiet = quiet
        self._source = source
        self._own = _OWN if quiet else 0
        self._news = threading.Event()
        self._end = threading.Event()
        self._mark = 0
        self._seen: object = None
        self._again: int | None = None
        self._looked = 0.0
        self._number = -1
        self._failures: set[str] = set()

    def run(self, every: float) -> None:
        """Look every so many seconds until `stop`, also after a look failed.

        A store that can call back when somebody writes is looked at then, with a pause after each look.
        """
        end = self._store.subscribe(self._news.set)
        try:
            while True:
                self._news.clear()
                if self._end.is_set():
                    return
                started = time.monotonic()
                try:
                    self.look()
                    self._failures.discard("store")
                except HitlError as error:
                    if not self._end.is_set():
                        self._fail("store", error)
                took = time.monotonic() - started
                if self._news.wait(every):
                    self._end.wait(min(max(_MOMENT, _IDLE * took), every))
        finally:
            if end is not None:
                end()

    def stop(self) -> None:
        """End `run` soon; safe to call from another thread or a signal handler."""
        self._end.set()
        self._news.set()

    def look(self) -> list[Notice]:
        """Send new notices; return those that were sent now.

        Raises:
            HitlError: the store, or the file of sent notices, can't be read.
        """
        now = self._store.now()
        seen = self._store.changes()
        due = self._again is not None and now >= self._again
        unknown = seen is None and time.monotonic() - self._looked >= _UNKNOWN
        if self._looked and not due and not unknown and seen == self._seen:
            return []
        waiting = self._store.waiting(_MOST)
        by_login = any(request.logins for thread in waiting for request in thread.pending)
        person = Person(self._person, self._store.roles() if by_login else ())
        asks = asked(waiting, person)
        notices = asks + expiring(waiting, person, now, self._before)
        notices += self._ended(now)
        self._again = next_deadline(waiting, person, now, self._before)
        sent = self._send([replace(notice, source=self._source) for notice in notices], now)
        self.sent.set_mark(self._mark)
        self._count(len({notice.thread for notice in asks}))
        self._seen, self._looked, self._quiet = seen, time.monotonic(), False
        return sent

    def _ended(self, now: int) -> list[Notice]:
        """Return notices of threads that the person has decided in and that ended since the last look."""
        mark = self._mark or self.sent.mark(now)
        self._mark = mark
        notices = []
        for thread in all_threads(self._store, within=""):
            if thread.updated_at < mark:
                break
            self._mark = max(self._mark, thread.updated_at)
            if thread.status not in ENDS:
                continue
            name = thread.info.thread_id
            cursor = self._store.cursor(name)
            ledger = self._store.ledger(name)
            notice = ended(thread, cursor, ledger, self._person, self._own) if cursor else None
            notices += [notice] if notice else []
        return notices

    def _send(self, notices: Sequence[Notice], now: int) -> list[Notice]:
        """Send notices by each notifier that has not sent them; return those that one has sent.

        A notifier that gathers gets those of one look as one.
        """
        sent: dict[str, Notice] = {}
        for notifier in self._notifiers:
            fresh = [notice for notice in notices if self.sent.claim(notifier.name, notice.key, now)]
            news = [] if self._quiet else [notice for notice in fresh if not self._sees(notice)]
            sent |= {notice.key: notice for notice in news}
            parts = [(words(notice, now), self._encode(notice)) for notice in news]
            if notifier.gathers and parts:
                parts = [(gathered(news, now), parts[0][1])]
            for text, document in parts:
                self._send_by(notifier, text, document)
        return [notice for notice in notices if notice.key in sent]

    def _send_by(self, notifier: Notifier, text: str, document: bytes) -> None:
        try:
            notifier.send(text, document)
            self._failures.discard(notifier.name)
        except NotificationFailed as error:
            self._fail(notifier.name, error)

    def _fail(self, source: str, error: HitlError) -> None:
        if source not in self._failures:
            self._failures.add(source)
            self._failed(error)

    def _count(self, number: int) -> None:
        if number != self._number:
            self._number = number
            self._counted(number)
