"""Review card on the run screen: when it opens and closes, and what its keys do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal, cast

from hitl_tui.engine.commands import LookAt, Unclaim
from hitl_tui.engine.log.requests import Request
from hitl_tui.ui.gate import rows_on_screen
from hitl_tui.ui.screens.modal import Severity
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.presence import claim_of
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from textual.timer import Timer

    from hitl_tui.engine.thread.comments import Comment
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.ui.widgets.review import ReviewPane

_NAME: Final = 40


class Reviewing:
    """Review card beside its subject; it opens by itself if the user had let the thread run.

    After a single step it does not: a person who steps looks at the changes, which the card would hide.
    """

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen
        self.card_open = False
        """Whether the card is on screen."""
        self.coming = False
        """Whether the card is being put together: keys wait for it, and so does “waits for you”."""
        self._shown_for = ""
        """Request for which the card opened last: it opens by itself only once for each."""
        self._looking: Timer | None = None
        self._looked_at: tuple[ViewSession, str] | None = None
        self._attending: tuple[object, ...] = ()
        self._stays = False
        """Whether the outcome of this decision replaces the card, whatever the setting says."""

    @property
    def state(self) -> Literal["", "open", "aside", "sending"]:
        """State of the card, as for `Situation`."""
        card = self.card if self.card_open else None
        if card is None or card.review.unsent:
            return "sending" if card else ""
        return "open" if card.has_focus_within else "aside"

    @property
    def voted(self) -> str:
        """Message to a person who has voted on all waiting requests, as for `Situation`."""
        requests = self.screen.session.requests if self.screen.session else ()
        if not requests:
            return ""
        from hitl_tui.engine.thread.interrupts import has_voted

        if not all(has_voted(asked, self.screen.actor) for asked in requests):
            return ""
        from hitl_tui.view.card import vote_given

        return vote_given(requests[0])

    @property
    def card(self) -> ReviewPane | None:
        """Review card, if there is one."""
        cards = self.screen.query("#card")
        return cast("ReviewPane", cards.first()) if cards else None

    def _show_card(self, *, open_now: bool) -> None:
        self.card_open = open_now
        self.screen.set_class(open_now, "-deciding")

    def decide(self) -> None:
        """Open the review card, or go back to it: unsent input stays."""
        if self.card_open and self.card is not None:
            self.card.focus_choices()
        elif self.screen.session and self.screen.session.requests:
            from hitl_tui.engine.thread.interrupts import has_voted

            waiting, me = self.screen.session.requests, self.screen.actor
            self.open_card(next(asked for asked in waiting if not has_voted(asked, me)), summoned=True)

    def open_card(self, request: Request, *, summoned: bool = False) -> None:
        """Show the card of a request beside its subject.

        Args:
            summoned: whether a person opened it with a key, and may type on into it.
        """
        from hitl_tui.ui.widgets.review import ReviewPane
        from hitl_tui.view.review import Review

        session = self.screen.session
        assert session is not None
        self.screen.travel(None)
        self.screen.stage.make_room()
        self._shown_for = request.id
        self._stays = False
        self._close_followed()
        self._look_at(session, request)
        if request.subject:
            self.screen.query_one(ChannelsPane).select(request.subject)
        card, actor, clock = self.card, self.screen.actor, self.screen.clock
        self.coming = True
        self.screen.read_styles("card")
        self._show_card(open_now=True)
        if card is None:
            review = Review(session, request, actor, self.screen.keymap, clock(), summoned=summoned)
            self.screen.query_one("#body").mount(ReviewPane(review, session, self, clock))
        else:
            card.show_request(session, request, actor, summoned=summoned)

    def _look_at(self, session: ViewSession, request: Request) -> None:
        """Show others that this person has the card open, once that lasts a while."""
        self._look_away()

        def look() -> None:
            self._looked_at = session, request.id
            self.screen.command(partial(session.driver.execute, LookAt(request.id, self.screen.actor)))

        self._looking = self.screen.set_timer(self.screen.attention.look_seconds, look)

    def _look_away(self) -> None:
        """Stop showing that, and release a claim that was made there without a decision."""
        if self._looking is not None:
            self._looking.stop()
        looked, self._looked_at = self._looked_at, None
        if looked is not None:
            self.screen.command(partial(looked[0].driver.execute, LookAt("", self.screen.actor)))

    def play(self, name: str) -> None:
        """Play the conversation of a verb about the request on the card."""
        from hitl_tui.ui.conversations import play
        from hitl_tui.verbs import verbs

        session, request, card = self.screen.session, self.asked_about, self.card
        if session is not None and request is not None:
            verb = verbs()[name].load()
            call = card.review.draft.part if card is not None and self.card_open else None
            self.screen.command(partial(play, self.screen, session, verb, request=request.id, call=call))

    def on_attending(self, session: ViewSession) -> None:
        """Show who has opened, left, claimed or handed over the request."""
        handed = tuple(request.handed for request in session.requests)
        if (session.view.attending, handed) != self._attending:
            self._attending = (session.view.attending, handed)
            if self.card_open and self.card is not None:
                self.card.attend(session)

    def card_arrived(self) -> None:
        """Note that the card is visible and has the focus."""
        self.coming = False
        self.screen.show_bars()

    def card_changed(self) -> None:
        """Update the keys and the comments."""
        self.screen.show_bars()
        self._show_comments()

    def _show_comments(self) -> None:
        """Show the comments of the card beside their passages while it is open."""
        pane, card = self.screen.query_one(ValuePane), self.card
        if card is not None and self.card_open:
            from hitl_tui.view.comments import destination

            pane.show_comments(card.review.comments, destination(card.review.request))
        else:
            pane.show_comments(())

    def next_thread(self) -> None:
        """Open the next thread that waits."""
        self.screen.threads.open_next()

    async def after_answer(self, session: ViewSession) -> None:
        """Run to the next stop, unless the thread was being stepped through."""
        await self.screen.stepping.after_answer(session)

    def lines_below(self, request: Request) -> int:
        """Return how many lines of the subject are below its visible part."""
        pane = self.screen.query_one(ValuePane)
        seen = rows_on_screen(pane)
        if not request.subject or pane.text is None or pane.text.channel != request.subject or not seen:
            return 0
        return max(len(pane.lines) - round(pane.scroll_y) - seen.stop, 0)

    def scroll_subject(self, by: int) -> None:
        """Scroll the subject by pages."""
        self.screen.query_one(ValuePane).turn_pages(by)

    def not_shown(self, request: Request) -> str:
        """Return why the subject can't be seen beside the card, "" if it can; show it if possible."""
        session, pane = self.screen.session, self.screen.query_one(ValuePane)
        if session is None or not request.subject or request.subject not in session.view.values:
            return ""
        name = sanitise_line(request.subject, _NAME)
        if session.is_past or pane.text is None or pane.text.channel != request.subject:
            self.screen.travel(None)
            self.screen.query_one(ChannelsPane).select(request.subject)
            return f"{name} was not on screen; look at it, then press again"
        if not rows_on_screen(pane):
            if self.screen.stage.pane:
                self.screen.stage.spotlight("")
                return f"{name} was not on screen; look at it, then press again"
            return f"{name} is not on screen; make the window larger"
        return ""

    def show_message(self, text: str, title: str = "", severity: Severity = "information") -> None:
        """Show a message in the footer."""
        self.screen.show_message(text, title, severity)

    def type_reason(self) -> None:
        """Move the cursor to the field for the reason of the card."""
        if self.card:
            self.card.action_type_reason("card.reason")

    def comment(self) -> None:
        """Comment on a passage of the subject: the selected one, or one to choose."""
        from hitl_tui.ui.screens.comment import CommentScreen
        from hitl_tui.view.comments import first_changed, passages, selected_passages

        card, session = self.card, self.screen.session
        if card is None or session is None or not self.card_open:
            return
        review = card.review
        subject = review.request.subject or ""
        found = passages(subject, session.view.values.get(subject)) if subject else ()
        if not found:
            self.screen.show_message("there is no text here to comment on", severity="warning")
            return
        selected = self.screen.get_selected_text() or ""
        before = self.screen.query_one(ValuePane).rows_before_selection()
        chosen = selected_passages(found, selected, before) if selected.strip() else ()
        first = 0 if chosen else first_changed(found, review.card.revised)
        asked = CommentScreen(subject, chosen or found, first, first, review.comments)

        def answered(comment: Comment | None) -> None:
            if comment is not None:
                card.add_comment(comment)

        self.screen.app.push_screen(asked, answered)

    def uncomment(self) -> None:
        """Undo the last comment."""
        if self.card is None or not self.card.drop_comment():
            self.screen.show_message("there is no comment to undo", severity="warning")

    def edit_asked(self) -> None:
        """Edit the subject; that of an inner thread is edited there."""
        request = self.asked_about
        if request is not None and request.thread:
            self.screen.threads.enter(request.thread)
        elif request is not None and request.subject:
            self.screen.editing.edit_channel(request.subject)

    @property
    def asked_about(self) -> Request | None:
        """Return the request on the card while it waits, else the first that waits."""
        waiting = self.screen.session.requests if self.screen.session else ()
        wanted = self.card.review.request.id if self.card is not None else ""
        return next((request for request in waiting if request.id == wanted), waiting[0] if waiting else None)

    def other_request(self, by: int) -> None:
        """Show another of the waiting requests."""
        waiting = self.screen.session.requests if self.screen.session else ()
        request = self.asked_about
        if request is not None and len(waiting) > 1:
            self.screen.command(
                partial(self._ask_instead, waiting[(waiting.index(request) + by) % len(waiting)])
            )

    async def _ask_instead(self, request: Request) -> None:
        """Show this request; first send a decision about the previous one."""
        sent = await self.send_decision()
        waiting = self.screen.session.requests if self.screen.session else ()
        if sent and any(other.id == request.id for other in waiting):
            self.open_card(request)

    def step_back(self) -> None:
        """Go back to the previously decided action."""
        if self.card:
            self.card.step_back()

    def take_back(self) -> None:
        """Undo the decision."""
        if self.card:
            self.card.take_back()

    async def send_decision(self) -> bool:
        """Send at once what could still be undone; return False if it was refused."""
        card = self.card
        return not self.card_open or card is None or await card.send_at_once()

    def close_card(self) -> None:
        """Hide the card; the request continues to wait."""
        card = self.card
        if card is not None and self.card_open:
            card.take_back()
            self.coming = False
            session, asked = self.screen.session, card.review.request
            self._look_away()
            if session is not None and asked in session.requests:
                standing = claim_of(session.view.attending, asked, self.screen.now())
                if standing is not None and standing.actor == self.screen.actor:
                    left = Unclaim(asked.id, self.screen.actor, left=True)
                    self.screen.command(partial(session.driver.execute, left))
            self._show_card(open_now=False)
            self.screen.query_one(ChannelsPane).focus()
            if session is not None:
                self.screen.stage.card_closed(session)
            self.card_changed()

    # Outcomes.

    @property
    def followed_open(self) -> bool:
        """Whether the outcomes of the person's decisions are shown in place of the card."""
        return bool(self.screen.query("#followed"))

    def turn_followed(self) -> None:
        """Show the outcomes of the person's decisions, or hide them; first send the card's decision."""
        if self.card_open:
            self._stays = not self._stays
            stays = "once you have decided, the results stay here"
            self.screen.show_message(stays if self._stays else "once you have decided, the card closes")
        elif self.followed_open:
            self._close_followed()
            self.screen.query_one(ChannelsPane).focus()
        else:
            self._show_followed()

    def _show_followed(self) -> None:
        from hitl_tui.ui.widgets.followed import FollowedPane

        session = self.screen.session
        if session is not None and not self.followed_open:
            self.screen.read_styles("card")
            self.screen.add_class("-followed")
            way = self.screen.key_hints["look.followed"]
            self.screen.query_one("#body").mount(FollowedPane(session, self.screen.actor, way))

    def _close_followed(self) -> None:
        self.screen.remove_class("-followed")
        self.screen.query("#followed").remove()

    def _close_decided(self) -> None:
        """Close the card after its decision was sent, or replace it by the outcome."""
        stays = self._stays or self.screen.attention.stays
        self.close_card()
        if stays:
            self._show_followed()

    def forget(self) -> None:
        """Forget the state, as another thread is shown."""
        self._close_followed()
        self.close_card()
        self._shown_for = ""

    def restore_draft(self, session: ViewSession) -> None:
        """Restore the input of a refused answer: if its request has gone, the card comes back with it."""
        card = self.card
        gone = card is not None and all(request.id != card.review.request.id for request in session.requests)
        if card is not None and gone and session is self.screen.session and card.survives_refresh():
            self._show_card(open_now=True)

    def on_progress(self, session: ViewSession) -> None:
        """Open the card if something waits and the user had let the thread run; close it if nothing waits."""
        request, card = session.request, self.card
        self.on_attending(session)
        if self.card_open and card is not None:
            from hitl_tui.view.card import how_it_went, vote_given

            asked, known, sent = self.asked_about, card.review.request.id, card.review.state == "sent"
            gone = all(pending.id != known for pending in session.requests)
            if gone and not sent and card.survives_refresh():
                return
            if asked is None:
                if sent:
                    self._close_decided()
                else:
                    self.screen.show_message(how_it_went(session.view.ledger, known))
                    self.close_card()
            elif sent and asked.id == known and asked.votes:
                # One of several votes: nothing is left to do here for the person who has given it.
                self.screen.show_message(vote_given(asked))
                self._close_decided()
            else:
                card.follow(session, asked)
        elif request is not None and self.opens_for(session):
            self.open_card(request)

    def opens_for(self, session: ViewSession) -> bool:
        """Whether the card opens by itself: something waits, and the user had let the thread run."""
        request = session.request
        return (
            request is not None
            and not request.breakpoint
            and not self.card_open
            and self.screen.stepping.going_on
            and request.id != self._shown_for
            and not session.is_past
            and self.screen.on_top
        )
