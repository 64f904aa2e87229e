"""What becomes of a thread that can't be opened because its log is damaged: told, and another one instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.app import App

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.errors import HitlError
from hitl_tui.ui.session import Session


@dataclass(frozen=True, slots=True)
class Damage:
    """A driver whose thread can't be opened, and why."""

    driver: Driver
    error: HitlError


def show_damage(
    app: App[Any], hub: Hub, damage: Damage, leave: str, done: Callable[[Session | HitlError], None]
) -> None:
    """Say what is wrong with a thread until another one is open, or the user leaves.

    Args:
        leave: what leaving does, in a word for the footer.
        done: takes the thread that was opened instead, or what was wrong when the user left.
    """
    from hitl_tui.ui.screens.damaged import DamagedScreen

    def left(result: Session | Damage | None) -> None:
        if isinstance(result, Damage):
            show_damage(app, hub, result, leave, done)
        else:
            done(result or damage.error)

    app.push_screen(DamagedScreen(hub, damage, leave), left)
