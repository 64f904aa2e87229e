"""The status line: in words, what is going on and whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass

from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.run_view import RunView
from hitl_tui.view.spans import Role


@dataclass(frozen=True, slots=True)
class StatusLine:
    """`glyph` and `word` ("WAITING") are the badge; `turn` says whose turn it is and how to go on."""

    glyph: str
    word: str
    role: Role
    turn: str
    step: str
    tokens: str
    cost: str
    elapsed: str

    @property
    def figures(self) -> str:
        """Step, tokens, cost and elapsed time, as at the right of the status line."""
        return " · ".join(part for part in (self.step, self.tokens, self.cost, self.elapsed) if part)


def status(view: RunView, now_us: int, *, pausing: bool = False, glyphs: Glyphs = UNICODE) -> StatusLine:
    """The status of a thread at a moment; `pausing` says that a pause was asked for and not yet reached."""
    raise NotImplementedError
