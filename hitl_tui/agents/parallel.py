"""Many prompts to one agent at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass

from hitl_tui.agents import background
from hitl_tui.agents.agent import Agent
from hitl_tui.engine.nodes.activity import AttemptCancelled, current_activity
from hitl_tui.errors import UsageError


@dataclass(frozen=True)
class Reply:
    """What became of one prompt: `text`, or None and the `error` that its chat ended with."""

    prompt: str
    text: str | None
    error: Exception | None = None


def parallel_chat(agent: Agent, prompts: Sequence[str], *, limit: int = 5) -> list[Reply]:
    """Send each prompt to a fresh copy of the agent, at most `limit` at once; replies in the prompts' order.

    A prompt that fails takes none of the others with it: its reply has the error.  What the copies use
    counts for the agent; its turns are neither sent nor changed.  Where a copy's tool waits for a
    person, the others are heard out first, so that nothing they said is asked again.

    Raises:
        UsageError: `limit` is below 1, or a prompt is no text.
        AttemptCancelled: the node's attempt was given up meanwhile.
    """
    call = _begin(agent, prompts, limit)
    try:
        return call.result()
    except CancelledError:
        _check_cancelled()
        raise
    finally:
        call.cancel()


async def aparallel_chat(agent: Agent, prompts: Sequence[str], *, limit: int = 5) -> list[Reply]:
    """As `parallel_chat`, without blocking the event loop it is awaited on."""
    call = _begin(agent, prompts, limit)
    try:
        return await asyncio.wrap_future(call)
    except (CancelledError, asyncio.CancelledError):
        _check_cancelled()
        raise
    finally:
        call.cancel()


def _begin(agent: Agent, prompts: Sequence[str], limit: int) -> Future[list[Reply]]:
    if limit < 1:
        raise UsageError(f"limit={limit}: give at least 1")
    wrong = next((prompt for prompt in prompts if not isinstance(prompt, str)), None)
    if wrong is not None or isinstance(prompts, str):
        raise UsageError(
            "parallel_chat takes a list of texts", f"found {prompts if wrong is None else wrong!r}"
        )
    return background.submit(_all(agent, list(prompts), limit))


async def _all(agent: Agent, prompts: Sequence[str], limit: int) -> list[Reply]:
    room = asyncio.Semaphore(limit)

    async def one(prompt: str) -> str:
        async with room:
            return await agent.aside().achat(prompt)

    results = await asyncio.gather(*map(one, prompts), return_exceptions=True)
    for result in results:
        # A question to a person, or the end of the attempt, is no failure of one prompt.
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
    return [
        Reply(prompt, None, result) if isinstance(result, Exception) else Reply(prompt, str(result))
        for prompt, result in zip(prompts, results, strict=True)
    ]


def _check_cancelled() -> None:
    activity = current_activity.get()
    if activity and activity.cancelled:
        raise AttemptCancelled
