"""Prices read from litellm's list without litellm are those that litellm tells."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.agents import prices
from hitl_tui.agents.litellm_backend import preload
from hitl_tui.agents.prices import TokenUse


@pytest.fixture(scope="module")
def litellm() -> Any:
    return preload().result(120)


@pytest.mark.parametrize(
    "tokens",
    [
        TokenUse(1_000, 200),
        TokenUse(1_000, 200, cache_read=400, reasoning=50),
        TokenUse(250_000, 2_000, cache_read=1_000),
    ],
    ids=["plain", "cached", "long"],
)
@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("openai", "gpt-4o", "gpt-4o"),
        ("", "gpt-4o-mini", "gpt-4o-mini"),
        ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("gemini", "gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("mistral", "mistral-large-latest", "mistral/mistral-large-latest"),
    ],
)
def test_a_price_equals_that_of_litellm(
    litellm: Any, provider: str, model: str, name: str, tokens: TokenUse
) -> None:
    litellm_types = litellm.types.utils
    usage = litellm_types.Usage(
        prompt_tokens=tokens.read,
        completion_tokens=tokens.written,
        total_tokens=tokens.read + tokens.written,
        prompt_tokens_details=litellm_types.PromptTokensDetailsWrapper(cached_tokens=tokens.cache_read),
        completion_tokens_details=litellm_types.CompletionTokensDetailsWrapper(
            reasoning_tokens=tokens.reasoning
        ),
    )
    theirs = litellm.cost_per_token(
        model=name, prompt_tokens=tokens.read, completion_tokens=tokens.written, usage_object=usage
    )
    assert tokens.cost(provider, model) == pytest.approx(sum(theirs))


def test_hourly_cache_writes_and_service_tiers_have_their_own_prices() -> None:
    plain, hour = TokenUse(1_000, 0), TokenUse(1_000, 0, cached_hour=1_000)
    written = TokenUse(1_000, 0, cache_written=1_000)
    costs = [tokens.cost("anthropic", "claude-sonnet-4-5") or 0.0 for tokens in (plain, written, hour)]
    assert costs == sorted(costs)
    assert len(set(costs)) == 3
    first = plain._replace(tier="priority").cost("openai", "gpt-4o")
    assert first is not None
    assert first > (plain.cost("openai", "gpt-4o") or 0.0)


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "no-such-model"), ("elsewhere", "gpt-4o"), ("", ""), ("openai", "")]
)
def test_an_unlisted_model_has_an_unknown_price_not_zero(provider: str, model: str) -> None:
    assert TokenUse(1, 1).cost(provider, model) is None


def test_audio_without_a_price_makes_the_cost_unknown() -> None:
    assert TokenUse(10, 1, audio_in=5).cost("anthropic", "claude-sonnet-4-5") is None


def test_a_local_model_costs_nothing() -> None:
    assert TokenUse(10, 1).cost("ollama", "whatever") == 0.0


def test_without_the_list_every_price_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    prices._price_list.cache_clear()
    prices._prices.cache_clear()
    try:
        assert TokenUse(1, 1).cost("openai", "gpt-4o") is None
    finally:
        monkeypatch.undo()
        prices._price_list.cache_clear()
        prices._prices.cache_clear()
