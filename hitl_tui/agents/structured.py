"""Structured answers: requests JSON that fits a schema, and reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hitl_tui.agents.exchange import Misfit
from hitl_tui.agents.tools import convert
from hitl_tui.engine.state.schema import as_schema
from hitl_tui.errors import GraphInvalid

_FENCE = "```"
_LABEL = 40
"""Most characters of a line that starts a code fence."""
_PROBLEMS = 5
_SHOWN = 200


class StructuredOutput:
    """The wanted output: a JSON Schema, or a type.

    Args:
        schema: as in `Agent.chat_structured`.

    Raises:
        GraphInvalid: no schema can be made from it.
    """

    def __init__(self, schema: Any) -> None:
        try:
            self.schema = as_schema(schema, "answer")
        except GraphInvalid as error:
            raise GraphInvalid(
                error.message.replace("channel 'answer'", "the answer's schema"), error.hint
            ) from None
        self._type = None if schema is None or isinstance(schema, Mapping) else schema
        _ = self._validator  # an invalid schema is reported before a model is called

    def ask(self, prompt: str) -> str:
        """Return the prompt with a description of the required reply."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"{prompt}\n\nAnswer with JSON alone, no other text, that fits this JSON Schema:\n{schema}"

    def read(self, text: str) -> Any:
        """Return the data of a reply; raises `Misfit` with each wrong path and its value."""
        value = self._json(text)
        problems = []
        for error in self._validator.iter_errors(value):
            problems.append(f"at {_path(error.instance_path)}: {_short(str(error.message))}")
            if len(problems) == _PROBLEMS:
                break
        if problems:
            raise Misfit("The answer does not fit the schema: " + "; ".join(problems))
        if self._type is None:
            return value
        try:
            if hasattr(self._type, "model_validate"):
                return self._type.model_validate(value)
            return convert(value, self._type)
        except ValueError as error:  # checks of a type that its schema does not have
            raise Misfit(f"The answer does not fit: {_short(str(error))}") from None

    @cached_property
    def _validator(self) -> Any:
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(self.schema)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise GraphInvalid(
                f"the answer's schema is not valid: {str(error).splitlines()[0]}", "see json-schema.org"
            ) from None

    @staticmethod
    def _json(text: str) -> Any:
        """Return the JSON in a reply: alone, in a code fence, or within text."""
        starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
        candidates = [text, _in_fence(text)]
        if starts:
            end = max(text.rfind("}"), text.rfind("]"))
            candidates.append(text[min(starts) : end + 1])
        problem: Exception | None = None
        for candidate in candidates:
            if not candidate.strip():
                continue
            try:
                return json.loads(candidate)
            except (ValueError, RecursionError) as error:
                problem = problem or error
        raise Misfit(f"The answer is not JSON ({problem}); found {_short(text)!r}")


def _in_fence(text: str) -> str:
    """Return the content of the first code fence that may contain JSON, "" if there is none.

    The time is linear in the length of the reply, also with many blanks or backticks: nothing is read twice.
    """
    at = text.find(_FENCE)
    while at >= 0:
        at += len(_FENCE)
        begin = text.find("\n", at, at + _LABEL)
        if begin >= 0 and text[at:begin].strip().lower() in ("", "json"):
            return text[begin + 1 : max(text.find(_FENCE, begin), 0)]
        at = text.find(_FENCE, at)
    return ""


def _path(parts: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return path.lstrip(".") or "the top"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
