"""Models that are imported late begin to be imported once it is known that they are wanted."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from hitl_tui import ScriptedModel
from hitl_tui.agents import litellm_backend
from hitl_tui.agents.models import prepare


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Future[Any]]:
    """The imports that were started; none of them ends by itself."""
    futures: list[Future[Any]] = []

    def preload() -> Future[Any]:
        futures.append(Future())
        return futures[0]

    monkeypatch.setattr(litellm_backend, "preload", preload)
    return futures


@pytest.mark.parametrize("models", [[], ["demo/worker", "scripted/line"], [ScriptedModel(["a reply"])]])
def test_our_own_models_import_no_library(started: list[Future[Any]], models: list[object]) -> None:
    prepare(models)
    assert started == []


def test_naming_a_litellm_model_starts_its_import(started: list[Future[Any]]) -> None:
    prepare(["demo/worker", "openai/test"])
    assert len(started) == 1


async def test_a_call_waits_for_the_import_to_finish(started: list[Future[Any]]) -> None:
    assert not litellm_backend.is_awaited()
    call = asyncio.create_task(litellm_backend.imported())
    await asyncio.sleep(0)
    assert litellm_backend.is_awaited()
    started[0].set_result("the module")
    assert await call == "the module"
    assert not litellm_backend.is_awaited()


async def test_a_cancelled_call_stops_waiting_for_the_import(started: list[Future[Any]]) -> None:
    call = asyncio.create_task(litellm_backend.imported())
    await asyncio.sleep(0)
    started[0].set_running_or_notify_cancel()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not litellm_backend.is_awaited()
