"""Work that runs beside the messages of a screen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from textual.dom import DOMNode
from textual.worker import Worker

from hitl_tui.errors import HitlError
from hitl_tui.ui.guard import Guarded, is_gone

log = logging.getLogger(__name__)
Work: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
"""Async function without arguments."""


def start_work(node: DOMNode, work: Work, *, group: str = "default", exclusive: bool = False) -> Worker[Any]:
    """Start an async function in a worker of a widget or screen; an error is shown and ends nothing else.

    A node with `on_worker_state_changed` shows a `HitlError` itself.

    It takes a function and no coroutine: a worker may be cancelled before it starts, and a coroutine that
    is never awaited causes a warning.

    Args:
        group: names the workers that do the same kind of work.
        exclusive: whether it cancels those of its group that still run.
    """
    app = node.app
    if not isinstance(app, Guarded):
        return node.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)

    async def guarded() -> Any:
        try:
            return await work()
        except HitlError as error:
            if not hasattr(node, "on_worker_state_changed"):
                app.show_error(error)
            raise
        except Exception as error:
            if is_gone(node):
                log.info("while %r was being removed", node, exc_info=error)
                return None
            app.survive(error)
            raise

    return node.run_worker(guarded, group=group, exclusive=exclusive, exit_on_error=False)
