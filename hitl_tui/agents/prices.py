"""Costs of model calls from litellm's price list, read as a file since importing litellm takes seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

_LIST: Final = "model_prices_and_context_window_backup.json"
_INPUT, _OUTPUT = "input_cost_per_token", "output_cost_per_token"
_ABOVE: Final = re.compile(rf"{_INPUT}_above_(\d+)k_tokens")
_OWN_MACHINE: Final = "ollama"


class TokenUse(NamedTuple):
    """Tokens of one call: all that were read and written, and those with special prices.

    Args:
        cache_read, cache_written, cached_hour, audio_in: parts of `read`: from a cache, into a cache, into a
            cache for an hour, and audio.
        reasoning, audio_out: parts of `written`.
        tier: the service tier, "" for the default.
    """

    read: int
    written: int
    cache_read: int = 0
    cache_written: int = 0
    cached_hour: int = 0
    audio_in: int = 0
    reasoning: int = 0
    audio_out: int = 0
    tier: str = ""

    def _parts(self) -> Iterator[tuple[int, str, str]]:
        """Return the numbers of tokens by price, each with the price to use if the list lacks that one."""
        cached = self.cache_read + self.cache_written + self.cached_hour
        yield max(self.read - cached - self.audio_in, 0), _INPUT, ""
        yield self.cache_read, "cache_read_input_token_cost", _INPUT
        yield self.cache_written, "cache_creation_input_token_cost", _INPUT
        yield self.cached_hour, "cache_creation_input_token_cost_above_1hr", "cache_creation_input_token_cost"
        yield self.audio_in, "input_cost_per_audio_token", ""
        yield max(self.written - self.reasoning - self.audio_out, 0), _OUTPUT, ""
        yield self.reasoning, "output_cost_per_reasoning_token", _OUTPUT
        yield self.audio_out, "output_cost_per_audio_token", ""

    def cost(self, provider: str, model: str) -> float | None:
        """Return US dollars; None if the list lacks a price.

        Args:
            provider: its name in the list, "" if unknown.
        """
        if provider == _OWN_MACHINE:
            return 0.0
        prices = _prices(provider, model)
        above = max(
            (int(n) for n in _ABOVE.findall(" ".join(prices)) if self.read > int(n) * 1000), default=0
        )
        endings = [f"_above_{above}k_tokens"] if above else []
        endings = [f"{ending}{tier}" for tier in (f"_{self.tier}", "") for ending in (*endings, "")]
        total = 0.0
        for tokens, kind, instead in self._parts():
            names = [f"{name}{ending}" for name in (kind, instead) if name for ending in endings]
            price = next((price for name in names if (price := prices.get(name)) is not None), None)
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0)
        return total


@cache
def _price_list() -> Mapping[str, msgspec.Raw]:
    """Return the rows of the list by model; {} if litellm is not installed."""
    spec = find_spec("litellm")
    try:
        text = Path(spec.origin).with_name(_LIST).read_bytes() if spec and spec.origin else b"{}"
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (OSError, msgspec.DecodeError):
        return {}


@lru_cache(maxsize=1_000)
def _prices(provider: str, model: str) -> Mapping[str, float]:
    """Return the prices of a model by name; {} if the list has no such model of that provider."""
    for name in (f"{provider}/{model}", model):
        if (raw := _price_list().get(name)) is not None:
            row: dict[str, Any] = msgspec.json.decode(raw)
            if str(row.get("litellm_provider", "")).startswith(provider):
                return {kind: price for kind, price in row.items() if isinstance(price, (int, float))}
    return {}
