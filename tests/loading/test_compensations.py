"""Compensation handlers in graph files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import GraphInvalid
from tests.loading.conftest import LoadFile
from tests.support.spec import spec

pytestmark = spec("13")

CODE = """
from hitl_tui import NodeResult
def book(state, config):
    return NodeResult({"booked": True}, compensation=("cancel", {"ref": 7}))
def cancel(state, config, args):
    return {"booked": False, "note": f"cancelled {args['ref']}"}
def wrong(state):
    pass
"""
FILE = """
[channels]
booked = { default = false }
note = { default = "" }
[compensations]
cancel = "trip_code.py:FUNCTION"
[nodes.book]
function = "trip_code.py:book"
writes = ["booked"]
[[edges]]
from = "START"
to = "book"
[[edges]]
from = "book"
to = "END"
"""


def test_a_file_names_the_handlers_of_its_nodes(load_file: LoadFile, tmp_path: Path) -> None:
    (tmp_path / "trip_code.py").write_text(CODE)
    runner = load_file(FILE.replace("FUNCTION", "cancel"))
    runner.invoke(thread_id="t")
    assert runner.rollback("t").ok
    assert runner.get_state("t") == {"booked": False, "note": "cancelled 7"}


@pytest.mark.parametrize(
    ("function", "message"),
    [("cancle", "there is no 'cancle'"), ("wrong", "must take")],
    ids=["a function that is not there", "a function of other arguments"],
)
def test_an_invalid_handler_is_reported_with_its_place(
    load_file: LoadFile, tmp_path: Path, function: str, message: str
) -> None:
    (tmp_path / "trip_code.py").write_text(CODE)
    with pytest.raises(GraphInvalid, match=message) as error:
        load_file(FILE.replace("FUNCTION", function))
    assert "compensations" in str(error.value)
