"""Mistakes in how a graph file flows: nodes, gates, edges and routes."""

from __future__ import annotations

from tests.loading.conftest import LoadFile
from tests.loading.mistakes import check_error_at, each_of

CASES = [
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
        "[[routes]] function: json:__name__ is text, it must be a function",
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
        "[nodes.lost]: no path leads from START to",
    ),
    ('"*" = "END"', '"*" = "check"', 25, "[[edges]]: no path leads to END"),
]


@each_of(CASES)
def test_a_mistake_is_reported_with_its_place(
    load_file: LoadFile, old: str, new: str, line: int, message: str
) -> None:
    check_error_at(load_file, old, new, line, message)
