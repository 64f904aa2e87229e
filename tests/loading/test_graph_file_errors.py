"""Graph files with mistakes: every one is told with file, line, table and key."""

from __future__ import annotations

import re

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

CASES = [
    # the shape of the file
    ('output = "draft"', "outptu = 1", 2, "[graph] outptu: unknown key 'outptu', did you mean 'output'?"),
    ('output = "draft"', "output = 3", 2, "[graph] output: must be text, not a number"),
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
    # channels
    ("draft = { d", "1draft = { d", 5, "[channels.1draft]: channel name '1draft' is not allowed"),
    ("secret = ", "goal = ", 7, "[channels.goal]: 'goal' is a read-only input of every run"),
    ('"sum"', '"smu"', 6, "[channels.n] reducer: unknown reducer 'smu'"),
    ('"sum"', '"last_n(0)"', 6, "[channels.n] reducer: last_n(0): the window must be a whole number"),
    ('"sum"', '"no_module:f"', 6, "[channels.n] reducer: there is no module 'no_module'"),
    ("default = 0,", 'default = "0",', 6, "[channels.n] default: channel 'n'"),
    ("default = 0,", "default = nan,", 6, "[channels.n] default: "),
    ("default = 0, reducer", "default = [0], reducer_", 6, "[channels.n] reducer_: unknown key"),
    (
        'default = 0, reducer = "sum",',
        "default = [0],",
        6,
        "[channels.n]: it starts as a list and has no reducer",
    ),
    (
        'default = 0, reducer = "sum"',
        'reducer = "min"',
        6,
        "[channels.n]: it has no value to start with, say",
    ),
    (
        "default = 0,",
        "default = 0, initial = 1,",
        6,
        "[channels.n]: it takes one of default, initial and unset",
    ),
    ('type = "integer"', 'type = "int"', 6, "[channels.n] schema: channel 'n': the schema is not valid"),
    ('schema = { type = "integer" }', 'schema = "no.json"', 6, "[channels.n] schema: there is no file"),
    # agents
    ('"demo/advisor"', '"demo/advsor"', 10, "[agents.writer] model: there is no demo model 'demo/advsor'"),
    (
        'model = "demo/advisor"',
        "",
        9,
        '[agents.writer]: it has no model, write model = "...", or give --model',
    ),
    (
        'model = "demo/advisor"',
        "api_key = 'x'",
        10,
        "[agents.writer] api_key: a graph file is no place for keys",
    ),
    (
        'model = "demo/advisor"',
        'model = "x"\noptions.extra_headers.Authorization = "x"',
        11,
        "[agents.writer] options.extra_headers.Authorization: a graph file is no place for keys",
    ),
    (
        '"demo/advisor"',
        '"x"\napi_base = "localhost"',
        11,
        "[agents.writer] api_base: must begin with http:// or",
    ),
    (
        '"demo/advisor"',
        '"x"\napi_base = "http://a:b@c"',
        11,
        "[agents.writer] api_base: must not hold a password",
    ),
    (
        '"demo/advisor"',
        '"x"\noptions.stream = true',
        11,
        "[agents.writer] options: agent 'writer': option 'stream'",
    ),
    (
        '"demo/advisor"',
        '"x"\noptions.timeout = 3',
        11,
        "[agents.writer] options.timeout: it belongs beside model",
    ),
    ('"demo/advisor"', '"x"\nreplies = ["a"]', 11, "[agents.writer] replies: it has a model already"),
    (
        'model = "demo/advisor"',
        'replies = [\n"a",\n{ when = "(", say = "b" }]',
        12,
        "[agents.writer] replies.when: it is no regular expression",
    ),
    # nodes
    (
        'writes = ["draft"]',
        'writes = ["drfat"]',
        16,
        "[nodes.write] writes: there is no channel 'drfat', did you mean 'draft'?",
    ),
    ('writes = ["draft"]', "", 12, "[nodes.write]: its answer goes nowhere, name a channel"),
    (
        'writes = ["draft"]',
        'writes = "*"\nanswer = "text"',
        17,
        "[nodes.write] answer: text needs one channel in writes",
    ),
    (
        'reads = ["draft"]',
        'reads = ["n"]',
        14,
        "[nodes.write] prompt: it shows {draft}, which is not among the node's reads, add 'draft' to reads",
    ),
    (
        'reads = ["draft"]',
        'reads = ["draft", "m"]',
        15,
        "[nodes.write] reads: there is no channel 'm', known: draft, n, secret",
    ),
    ("{draft}", "{drfat}", 14, "[nodes.write] prompt: there is no channel 'drfat', did you mean 'draft'?"),
    ("{draft}", "{draft} {secret.x}", 14, "[nodes.write] prompt: it shows {secret.x}, which is not among"),
    (
        'agent = "writer"',
        'agent = "writre"',
        13,
        "[nodes.write] agent: there is no agent 'writre', did you mean 'writer'?",
    ),
    (
        'agent = "writer"',
        "",
        12,
        "[nodes.write]: it doesn't say what it does, a node has one of agent, function and gate",
    ),
    (
        'agent = "writer"',
        'agent = "writer"\nfunction = "a:b"',
        12,
        "[nodes.write]: it has agent and function",
    ),
    (
        'agent = "writer"',
        'function = "json:dumps"',
        14,
        "[nodes.write] prompt: only a node with an agent has it",
    ),
    ("[nodes.write]", '[nodes."w:rite"]', 12, """[nodes.w:rite]: node name 'w:rite' is not allowed"""),
    # gates
    (
        'title = "Good?"',
        'title = "Good?"\nsubject = "drft"',
        20,
        "[nodes.check] gate.subject: there is no channel 'drft'",
    ),
    (
        'title = "Good?"',
        'title = "Good?"\nshow = ["secret"]',
        20,
        "[nodes.check] gate.show: channel 'secret' is private",
    ),
    (
        'title = "Good?"',
        'title = "Good?"\nrecommended = "ye"',
        20,
        "[nodes.check] gate.recommended: there is no choice 'ye', did you mean 'yes'?",
    ),
    (
        'title = "Good?"',
        'title = "Good?"\non_timeout = "?"',
        20,
        "[nodes.check] gate.on_timeout: there is no choice '?'",
    ),
    (
        'title = "Good?"',
        'title = "Good?"\nquorum = 2\nreviewers = ["a"]',
        20,
        "[nodes.check] gate.quorum: there are only 1 reviewers",
    ),
    ("set = { n = 1 }", 'set = { n = "1" }', 21, "[nodes.check] gate.choices.set.n: channel 'n'"),
    ("set = { n = 1 }", "set = { m = 1 }", 21, "[nodes.check] gate.choices.set.m: there is no channel 'm'"),
    ('words = "draft"', 'words = "drft"', 22, "[nodes.check] gate.choices.words: there is no channel 'drft'"),
    (
        'words = "draft"',
        'words = "n", set = { n = 1 }',
        22,
        "[nodes.check] gate.choices.words: set gives 'n' a value already",
    ),
    (
        'id = "no"',
        'id = "yes"',
        20,
        "[nodes.check] gate.choices: gate at 'check': it needs choices with different ids",
    ),
    # edges and routes
    ('to = "check"', 'to = "chekc"', 31, "[[edges]] to: there is no node 'chekc', did you mean 'check'?"),
    ('from = "START"', 'from = "BEGIN"', 26, "[[edges]] from: there is no node 'BEGIN'"),
    ('"*" = "END"', '"*" = "END_"', 36, "[[routes]] map.*: there is no node 'END_', did you mean 'END'?"),
    ('channel = "n"', 'channel = "m"', 35, "[[routes]] channel: there is no channel 'm'"),
    ('channel = "n"', "", 33, "[[routes]]: it needs one of channel and function"),
    ('channel = "n"', 'function = "n"', 35, "[[routes]] function: 'n' doesn't name a function"),
    ('channel = "n"', 'function = "no.py:n"', 35, "[[routes]] function: there is no file"),
    ('channel = "n"', 'function = "json:nope"', 35, "[[routes]] function: there is no 'nope' in json"),
    ('channel = "n"', 'function = "json:__name__.x"', 35, "[[routes]] function: there is no 'x' in json"),
    (
        'channel = "n"',
        'function = "json:__name__"',
        35,
        "[[routes]] function: json:__name__ is a str, it must be a function",
    ),
    ('from = "START"', 'from = "check"', 25, "[[edges]]: no edge leads from START, add exactly one"),
    ('from = "write"', 'from = "START"', 29, "[[edges]]: 2 edges lead from START, add exactly one"),
    (
        'to = "check"',
        'to = "check"\n[[edges]]\nfrom = "write"\nto = "END"',
        32,
        "[[edges]]: node 'write' has 2 fixed",
    ),
    (
        "[[edges]]",
        "[nodes.lost]\nfunction = 'json:dumps'\n[[edges]]",
        25,
        "[nodes.lost]: no way leads from START to",
    ),
    ('"*" = "END"', '"*" = "check"', 25, "[[edges]]: no way leads to END"),
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
    # ready-made workflows
    ('output = "draft"', 'workflow = "advsor"', 2, "[graph] workflow: there is no workflow 'advsor'"),
    (
        'output = "draft"',
        'workflow = "advisor"',
        9,
        "[agents.writer]: the advisor workflow has no 'writer'",
    ),
    (
        "[graph]",
        "[nodes.n]\nagent = 'writer'\n[graph]\nworkflow = 'advisor'",
        1,
        "[nodes]: it has no place beside workflow = 'advisor'",
    ),
    (
        "[graph]",
        "[compensations]\nc = 'm.py:f'\n[graph]\nworkflow = 'advisor'",
        1,
        "[compensations]: it has no place beside workflow = 'advisor'",
    ),
    ('output = "draft"', 'workflow = "advisor"', 9, "[agents]: the advisor workflow needs an agent 'worker'"),
    (
        "[graph]",
        "[options]\nhuman = 'x'\n[graph]\nworkflow = 'advisor'",
        2,
        "[options] human: 'x' is not one of them, known: verdict",
    ),
    ("[graph]", "[options]\nmax = 1\n[graph]\nworkflow = 'advisor'", 2, "[options] max: unknown key 'max'"),
    (
        "[graph]",
        "[options]\nmax_revisions = '1'\n[graph]\nworkflow = 'advisor'",
        2,
        "[options] max_revisions: must be a whole number, not text",
    ),
]


def test_the_file_of_the_cases_is_sound(load_file: LoadFile) -> None:
    assert load_file(GOOD).invoke(thread_id="t").status == "waiting"


@pytest.mark.parametrize(("old", "new", "line", "message"), CASES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_told_with_its_place(
    load_file: LoadFile, old: str, new: str, line: int, message: str
) -> None:
    assert old in GOOD
    with pytest.raises(GraphInvalid) as caught:
        load_file(GOOD.replace(old, new, 1))
    assert f"mine.toml, line {line}, {message}" in str(caught.value)


def test_several_mistakes_are_told_together_in_the_order_of_the_file(load_file: LoadFile) -> None:
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


def test_a_mistake_in_a_channel_is_not_told_again_where_it_is_used(load_file: LoadFile) -> None:
    with pytest.raises(GraphInvalid) as caught:
        load_file(GOOD.replace('{ default = "", schema', "{ default = 1, schema"))
    assert caught.value.message.count("\n") == 0
