"""What every command is: one wish about a thread, as data (DESIGN, principle 2)."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

R = TypeVar("R")


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Command(
    msgspec.Struct, Generic[R], frozen=True, tag_field="command", tag=_snake_case, forbid_unknown_fields=True
):
    """What somebody wants of a thread; `R` is what carrying it out gives back.

    Attributes:
        takes_graph: it can't be carried out on a thread whose graph can't be built.
    """

    takes_graph: ClassVar[bool] = True


def verb(command: type[Command[Any]]) -> str:
    """What a kind of command is called in JSON, in snapshots and in words, as "update_state"."""
    return str(command.__struct_config__.tag)
