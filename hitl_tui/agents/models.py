"""Finds the backend for an agent's `model`, and checks the agent's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hitl_tui.agents.backend import ModelBackend
from hitl_tui.errors import UsageError

_DEMO = "demo/"
_OURS = (_DEMO, "scripted/")


def find_backend(model: str | ModelBackend) -> ModelBackend:
    """Return the backend for a litellm name, a "demo/NAME" or a model object, which is its own backend.

    Raises:
        UsageError: an unknown demo model, or not a model.
    """
    if not isinstance(model, str):
        if not hasattr(model, "stream") or not hasattr(model, "estimate"):
            raise UsageError(
                f"a {type(model).__name__} is not a model",
                'give a name, as "anthropic/claude-sonnet-4-5", or a script: ScriptedModel(["a reply"])',
            )
        return model
    if model.startswith(_DEMO):
        from hitl_tui.agents.demo import demo_model

        return demo_model(model.removeprefix(_DEMO))
    from hitl_tui.agents.litellm_backend import LiteLLMBackend

    return LiteLLMBackend(model)


def prepare(models: Iterable[object]) -> None:
    """Start importing what calls of these models need, in a background thread."""
    if any(isinstance(model, str) and not model.startswith(_OURS) for model in models):
        from hitl_tui.agents.litellm_backend import preload

        preload()


_KINDS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "instructions": (str,),
    "temperature": (int, float),
    "api_base": (str,),
}
_OF_A_PROVIDER = ("api_base", "api_key", "api_version", "organization", "base_url")


def check_settings(settings: Mapping[str, Any], agent: str) -> None:
    """Refuse settings that can't be changed while an agent is in use; raises `UsageError`."""
    for name, value in settings.items():
        kinds = _KINDS.get(name)
        if kinds is None:
            raise UsageError(f"agent {agent!r} has no setting {name!r}", f"settings: {', '.join(_KINDS)}")
        if not isinstance(value, kinds) or isinstance(value, bool) or (name == "model" and not value):
            wanted = "a number" if name == "temperature" else "a text"
            raise UsageError(f"agent {agent!r}: {name} is {value!r}", f"give {wanted}")


def options_for(
    model: str | ModelBackend,
    made_for: str | ModelBackend,
    given: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options of calls to `model` by an agent whose options were given for `made_for`."""
    options = {name: value for name, value in given.items() if name != "num_retries"}
    if _provider(model) != _provider(made_for):
        options = {name: value for name, value in options.items() if name not in _OF_A_PROVIDER}
    for name in ("temperature", "api_base"):
        if name in settings:
            options[name] = settings[name]
    return options


def _provider(model: str | ModelBackend) -> str:
    return model.partition("/")[0] if isinstance(model, str) and "/" in model else str(model)
