"""The options of commands that run a thread for its user: on screen, in lines or headless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hitl_tui.cli.options import (
    break_option,
    durability_option,
    headless_option,
    options_as,
    plain_option,
    reviewer_option,
    store_option,
    theme_option,
)
from hitl_tui.cli.output import json_option
from hitl_tui.cli.tape import tape, tape_options

if TYPE_CHECKING:
    from hitl_tui.cli.opening import Choose, OpenStore
    from hitl_tui.config import Settings


@dataclass(frozen=True)
class RunOptions:
    """What the command line says about how a thread is run, where, and by whom."""

    store: str | None
    durability: str | None
    theme: str | None
    reviewer: str | None
    plain: bool
    headless: bool
    breaks: tuple[str, ...]
    as_json: bool
    record: str | None
    cassette: str | None

    def settings(self, **flags: str | None) -> Settings:
        """The settings of the command.

        Args:
            flags: what else the command line says about them; None says nothing.

        Raises:
            UsageError: lists every problem found.
        """
        from hitl_tui.config import load_settings

        own = {"store": self.store, "durability": self.durability, "theme": self.theme}
        return load_settings({**own, "reviewer": self.reviewer, **flags})

    def run(self, settings: Settings, open_store: OpenStore, choose: Choose) -> int:
        """Run the chosen thread in the way that was asked for; returns the exit code.

        Raises:
            HitlError: the options don't go together, or the thread can't be opened.
        """
        quiet = self.headless or self.as_json
        with tape(self.record, self.cassette, shown=not quiet):
            if quiet:
                from hitl_tui.cli.headless import run_headless

                return run_headless(settings, open_store, choose, as_json=self.as_json, breaks=self.breaks)
            from hitl_tui.cli.session import show

            return show(settings, open_store, choose, plain=self.plain, breaks=self.breaks)


run_options = options_as(
    "how",
    RunOptions,
    store_option,
    durability_option,
    theme_option,
    reviewer_option,
    plain_option,
    headless_option,
    break_option,
    json_option,
    tape_options,
)
