"""Graph files with mistakes: each is reported with file, line, table and key."""

from __future__ import annotations

import re

import pytest

from hitl_tui import GraphInvalid
from tests.loading.conftest import LoadFile
from tests.loading.mistakes import GOOD, check_error_at, each_of

CASES = [
    # the shape of the file
    ('output = "draft"', "outptu = 1", 2, "[graph] outptu: unknown key 'outptu', did you mean 'output'?"),
    ('output = "draft"', "output = 3", 2, "[graph] output: must be text, not a number"),
    ("[graph]", "[workflow]", 1, "[workflow]: unknown key 'workflow', known: "),
    ("[graph]", "[grahp]", 1, "[grahp]: unknown key 'grahp', did you mean 'graph'?"),
    ('"sum", schema', '["sum"], schema', 6, "[channels.n] reducer: must be text, not a list"),
    (
        "private",
        "hidden",
        7,
        "[channels.secret] visibility: 'hidden' is not one of them, known: private, public",
    ),
    ("title", "titel", 18, "[nodes.check] gate: 'title' is missing"),
    ("title", "titel", 19, "[nodes.check] gate.titel: unknown key 'titel', did you mean 'title'?"),
    ('id = "no"', "id = 0", 22, "[nodes.check] gate.choices.id: must be text, not a number"),
    ('to = "check"', "", 29, "[[edges]]: 'to' is missing"),
    ("[nodes.write]", "[nodes.write]\ntimeout = 0", 13, "[nodes.write] timeout: must be above 0, not 0"),
    ("[nodes.write]", "[nodes.write]\nretry = 0", 13, "[nodes.write] retry: must be at least 1, not 0"),
    (
        "[nodes.write]",
        "[nodes.write]\nretry.wait = -1",
        13,
        "[nodes.write] retry.wait: must be at least 0, not -1",
    ),
    (
        "[nodes.write]",
        "[nodes.write]\nretry = 'x'",
        13,
        "[nodes.write] retry: must be a whole number or a table",
    ),
    (
        "[nodes.write]",
        "[nodes.write]\non_taint = 'ask'",
        13,
        "[nodes.write] on_taint: 'ask' is not one of them, known: allow, approve, block, warn",
    ),
    ("[nodes.write]", "[nodes.write]\nexternal = 3", 13, "[nodes.write] external: must be"),
    ("[nodes.write]", "[nodes.write]\nexternal = ''", 13, "[nodes.write] external: must"),
    ("[[routes]]", "[routes]", 33, "[[routes]]: must be a list, not a table"),
    # the rest
    (
        "[graph]",
        "[interrupts]\nafter = ['chekc']\n[graph]",
        2,
        "[interrupts] after: there is no node 'chekc', did you mean 'check'?",
    ),
    (
        "[graph]",
        "[interrupts]\nbefore = ['check', 'check']\n[graph]",
        2,
        "[interrupts] before: it names 'check' twice",
    ),
    (
        "[graph]",
        "[[interrupts.after]]\nnode = 'check'\ntitle = 'T'\nchoices = [{ id = 'a' }]\n[graph]",
        22,
        "[nodes.check] gate: there is another gate after this node",
    ),
    (
        "[graph]",
        "[limits]\nmax_tokens = 'x'\n[graph]",
        2,
        "[limits] max_tokens: must be a whole number, not text",
    ),
    (
        "[graph]",
        "[termination.text_match]\npattern = '('\nchannel = 'n'\n[graph]",
        2,
        "[termination] text_match.pattern: text_match",
    ),
    (
        "[graph]",
        "[termination.text_match]\npattern = 'x'\nchannel = 'm'\n[graph]",
        3,
        "[termination] text_match.channel: there is no channel 'm'",
    ),
    ("[graph]", "[inputs.task]\n[graph]", 1, "[inputs.task] channel: there is no channel 'task'"),
    (
        'output = "draft"',
        'output = "drafts"',
        2,
        "[graph] output: there is no channel 'drafts', did you mean 'draft'?",
    ),
    ("[graph]", "[options]\nx = 1\n[graph]", 1, "[options]: it goes with a ready-made workflow only"),
]


def test_the_file_of_the_cases_is_sound(load_file: LoadFile) -> None:
    assert load_file(GOOD).invoke(thread_id="t").status == "waiting"


@each_of(CASES)
def test_a_mistake_is_reported_with_its_place(
    load_file: LoadFile, old: str, new: str, line: int, message: str
) -> None:
    check_error_at(load_file, old, new, line, message)


def test_several_mistakes_are_reported_together_in_file_order(load_file: LoadFile) -> None:
    text = (
        GOOD.replace('"sum"', '"smu"')
        .replace('writes = ["draft"]', 'writes = ["x"]')
        .replace('to = "check"', 'to = "y"')
    )
    with pytest.raises(GraphInvalid) as caught:
        load_file(text)
    assert [
        int(number) for number in re.findall(r"^mine.toml, line (\d+)", caught.value.message, re.MULTILINE)
    ] == [6, 16, 31]


def test_too_many_mistakes_are_counted(load_file: LoadFile) -> None:
    with pytest.raises(GraphInvalid, match="and 10 more"):
        load_file("".join(f"x{number} = 1\n" for number in range(30)))


def test_a_mistake_in_a_channel_is_reported_only_once(load_file: LoadFile) -> None:
    with pytest.raises(GraphInvalid) as caught:
        load_file(GOOD.replace('{ default = "", schema', "{ default = 1, schema"))
    assert caught.value.message.count("\n") == 0
