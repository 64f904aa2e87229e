"""From the `model` an agent is given to the backend that answers for it."""

from __future__ import annotations

from hitl_tui.agents.backend import ModelBackend

_DEMO = "demo/"


def find_backend(model: str | ModelBackend) -> ModelBackend:
    """The backend for a litellm name, a "demo/NAME" or a model object, which is its own.

    Raises:
        UsageError: an unknown demo model.
    """
    if not isinstance(model, str):
        return model
    if model.startswith(_DEMO):
        from hitl_tui.agents.demo import demo_model

        return demo_model(model.removeprefix(_DEMO))
    from hitl_tui.agents.litellm_backend import LiteLLMBackend

    return LiteLLMBackend(model)
