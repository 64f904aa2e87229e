"""A valid graph file to make mistakes in, and where each must be reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hitl_tui import GraphInvalid
from tests.loading.conftest import LoadFile

GOOD = """\
[graph]
output = "draft"

[channels]
draft = { default = "", schema = { type = "string" } }
n = { default = 0, reducer = "sum", schema = { type = "integer" } }
secret = { default = "", visibility = "private" }

[agents.writer]
model = "demo/advisor"

[nodes.write]
agent = "writer"
prompt = "About {draft}"
reads = ["draft"]
writes = ["draft"]

[nodes.check.gate]
title = "Good?"
choices = [
    { id = "yes", set = { n = 1 } },
    { id = "no", words = "draft" },
]

[[edges]]
from = "START"
to = "write"

[[edges]]
from = "write"
to = "check"

[[routes]]
from = "check"
channel = "n"
map = { 0 = "write", "*" = "END" }
"""


Mistake = tuple[str, str, int, str]
"""What is replaced in `GOOD`, by what, on which line that is told, and the beginning of what is told."""


def each_of(cases: Sequence[Mistake]) -> pytest.MarkDecorator:
    """One test for each mistake, called by what is told."""
    return pytest.mark.parametrize(
        ("old", "new", "line", "message"), cases, ids=[message[:70] for *_, message in cases]
    )


def check_error_at(load_file: LoadFile, old: str, new: str, line: int, message: str) -> None:
    """With `old` replaced by `new`, the file is refused with this message at this line."""
    assert old in GOOD
    with pytest.raises(GraphInvalid) as caught:
        load_file(GOOD.replace(old, new, 1))
    assert f"mine.toml, line {line}, {message}" in str(caught.value)
