"""Commands are data: each can be written as JSON and read back, and has one handler at most."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from hitl_tui import UsageError, ValueRejected
from hitl_tui.engine import commands
from hitl_tui.engine.commands import (
    COMMANDS,
    HANDLER_MODULES,
    Command,
    decode_command,
    encode_command,
    handler_of,
    verb,
)
from hitl_tui.engine.log.records import Limits
from tests.support.every_command import with_every_field_set


@pytest.mark.parametrize("kind", COMMANDS, ids=verb)
def test_a_command_is_written_as_json_and_read_back_equal(kind: type[Command[Any]]) -> None:
    command = with_every_field_set(kind)
    for field in msgspec.structs.fields(kind):
        assert getattr(command, field.name) != field.default, field.name
    text = encode_command(command)
    assert msgspec.json.decode(text)["command"] == verb(kind)
    for data in (text, text.decode()):
        back = decode_command(data)
        assert back == command
        assert repr(back) == repr(command)  # 3 and 3.0 are equal, and not the same


@pytest.mark.parametrize("kind", COMMANDS, ids=verb)
def test_the_verb_is_the_name_in_snake_case(kind: type[Command[Any]]) -> None:
    assert re.sub("_(.)", lambda found: found[1].upper(), f"_{verb(kind)}") == kind.__name__


def test_every_kind_of_command_is_in_the_union_and_every_handler_is_of_one() -> None:
    assert set(COMMANDS) == set(Command.__subclasses__())
    assert set(HANDLER_MODULES) <= set(COMMANDS)
    assert all(callable(handler_of(kind)) for kind in HANDLER_MODULES)
    assert len({verb(kind) for kind in COMMANDS}) == len(COMMANDS)
    assert {kind.__name__ for kind in COMMANDS} <= set(commands.__all__)


def test_every_limit_can_be_extended_as_json() -> None:
    limits = {**dict.fromkeys(Limits.__struct_fields__, 3), "on_unknown_price": "stop"}
    assert decode_command(encode_command(commands.ExtendLimits(limits))) == commands.ExtendLimits(limits)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ("", "JSON"),
        (b"\xff", "JSON"),
        (b'"\xff"', "JSON|UTF-8"),
        ("[]", "expected `object`, got `array`"),
        ("{}", "missing required field `command`"),
        ('{"command": "destroy"}', "'destroy'"),
        ('{"command": "answer", "request_id": "r", "value": 1}', "`step`"),
        ('{"command": "answer", "request_id": "r", "value": 1, "step": "2"}', r"int.*\$\.step"),
        ('{"command": "cancel", "reson": "typo"}', "`reson`"),
        ('{"command": "declassify", "channel": "c", "actor": "a", "reason": "r", "seen": "%"}', "seen"),
        ("[" * 100_000, "JSON|recursion"),
    ],
)
def test_an_invalid_command_is_refused_with_a_reason(data: bytes | str, wanted: str) -> None:
    with pytest.raises(UsageError, match=re.compile(wanted, re.DOTALL | re.IGNORECASE)) as refused:
        decode_command(data)
    assert "update_state" in refused.value.hint


@pytest.mark.parametrize("value", [float("nan"), b"raw", {1: "x"}, {"a": {"b": object()}}])
def test_a_value_that_is_not_json_is_refused_and_not_converted(value: Any) -> None:
    with pytest.raises(ValueRejected, match="value"):
        encode_command(commands.Answer("r", value, 1))
