"""Mistakes in what a graph file declares: channels, agents, the options of a ready-made workflow."""

from __future__ import annotations

from tests.loading.conftest import LoadFile
from tests.loading.mistakes import check_error_at, each_of

CASES = [
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
        "[agents.writer] api_key: keys don't belong in a graph file",
    ),
    (
        'model = "demo/advisor"',
        'model = "x"\noptions.extra_headers.Authorization = "x"',
        11,
        "[agents.writer] options.extra_headers.Authorization: keys don't belong in a graph file",
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
        "[agents.writer] replies.when: it is not a valid regular expression",
    ),
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


@each_of(CASES)
def test_a_mistake_is_reported_with_its_place(
    load_file: LoadFile, old: str, new: str, line: int, message: str
) -> None:
    check_error_at(load_file, old, new, line, message)
