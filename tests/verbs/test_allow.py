"""Allowing calls of a tool."""

from __future__ import annotations

import pytest

from hitl_tui.engine.commands import Allow
from hitl_tui.errors import UsageError
from hitl_tui.plain.conversations import read_words
from hitl_tui.verbs import verbs
from hitl_tui.verbs.conversation import AskReply
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.verbs.flows import ASKING_A_MODEL, ASKING_FOR_CALLS, ONE_CALL, allowing, stopped
from tests.verbs.hosts import Case, Hosts, each_host

ARGS = {"to": "ann@box", "copies": 2}
EVERYTHING = {
    "arg": "to=*@box copies=2",
    "note": "known",
    "for": "2h",
    "high_risk": "yes",
    "tainted": "yes",
    "tool": "send",
}

test_each_host = each_host(
    Case("calls like it", "allow", ONE_CALL, stopped,
         (Allow("send", "ann", {"to": "*@box", "copies": 2}, False, True, True, "known", minutes=120),),
         EVERYTHING, choice="like", keys=("d",)),
    Case("another tool", "allow", ONE_CALL, stopped, (Allow("drop", "ann", {"n": 1}),),
         {"tool": "drop", "arg": "n=1"}, choice="like", keys=("d",)),
    Case("exactly this call", "allow", ONE_CALL, stopped, (Allow("send", "ann", ARGS, True),),
         choice="call", keys=("d",)),
    Case("one of two calls", "allow", ASKING_FOR_CALLS, stopped, (Allow("send", "ann", ARGS, True),),
         {"tool": "send"}, choice="call", keys=("d",)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "fields", "choice"),
    [
        ("send to=team@*", {"tool": "send", "arg": "'to=team@*'"}, ""),
        ("to=team@* n=3", {"arg": "'to=team@*' n=3"}, ""),
        ("send to", {"tool": "send", "arg": "to"}, ""),
        ("send arg=to=x arg='n=1 m=2'", {"tool": "send", "arg": "to=x n=1 m=2"}, ""),
        ("call high-risk --tainted", {"high_risk": "yes", "tainted": "yes"}, "call"),
        ("list", {}, "list"),
    ],
)
def test_other_words_are_patterns_and_never_a_note(typed: str, fields: dict[str, str], choice: str) -> None:
    assert read_words("allow", verbs()["allow"].load(), typed) == (fields, choice)


def test_a_switch_takes_yes_or_no() -> None:
    said = {text: AskReply("", {"x": text}).yes("x") for text in ("", "no", "n", " Yes ", "y")}
    assert list(said.values()) == [False, False, False, True, True]
    with pytest.raises(UsageError, match="neither yes nor no"):
        AskReply("", {"x": "perhaps"}).yes("x")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--call",), "2 calls wait: send, drop"),
        ((), "2 calls wait: send, drop"),
        (("send", "--call", "--arg", "to=x"), "this call is allowed with exactly its arguments"),
        (("send", "--arg", "to"), "'to' is not NAME=PATTERN"),
        (("send", "--for", "soon"), "for: 'soon' is not a time"),
        (("send", "--for", "0m"), "an allowance can't last 0 minutes"),
    ],
)
def test_a_subcommand_allows_nothing_by_guessing(
    app: App, hosts: Hosts, words: tuple[str, ...], says: str
) -> None:
    hosts.prepared(Case("", "allow", ASKING_FOR_CALLS, stopped, ()))
    assert says in app.expect(2, "allow", "r", *words, "--as", "ann").err
    assert app.expect(0, "allow", "r", "--list").out == "nothing is allowed\n"


def test_what_is_allowed_is_listed_and_sends_nothing(app: App, hosts: Hosts) -> None:
    case = Case("", "allow", ONE_CALL, allowing, (), choice="list")
    assert hosts.play("subcommand", case, hosts.prepared(case)) == []
    app.expect(0, "allow", "r", "drop", "--arg", "n=1", "--as", "ann", "--note", "why not")
    listed = app.expect(0, "allow", "r", "--list").out
    assert listed == "a2: send, by bob\na3: drop with n=1, by ann: “why not”\n"
    document = app.expect(0, "allow", "r", "--list", "--json").document
    assert [each["tool"] for each in document["allowances"]] == ["send", "drop"]


def test_in_plain_text_mode_the_word_alone_lists_what_is_allowed_and_asks(talk: Talker, hosts: Hosts) -> None:
    hosts.prepared(Case("", "allow", ONE_CALL, allowing, ()))
    output = talk("+\n\n+ list\nyes\nno more\nq\n", "resume", "r", "--plain").out
    asked, listed = output.split("Nothing was done.")
    assert "  | Allowed already:\n  | a2: send, by bob\nc: this call, with these arguments" in asked
    assert "Allow in this thread" not in listed
    assert "a2 is revoked" in listed


def test_in_plain_text_mode_the_word_alone_asks_what_to_revoke_if_nothing_waits(
    talk: Talker, hosts: Hosts
) -> None:
    hosts.prepared(Case("", "allow", ASKING_A_MODEL, stopped, ()))
    output = talk("+\n+ send to=x\n\n+\nyes\nwide\n+\nq\n", "resume", "r", "--plain").out
    assert "Which?" not in output
    assert "Revoke a1: send with to=x, by" in output
    assert output.count("nothing is allowed in this thread without asking.") == 2


def test_the_help_of_plain_text_mode_says_so_and_names_switches_alone(talk: Talker, hosts: Hosts) -> None:
    hosts.prepared(Case("", "allow", ASKING_A_MODEL, stopped, ()))
    output = talk("help\nq\n", "resume", "r", "--plain").out
    assert "+, allow: list what is allowed, and ask what else to allow or what to revoke.\n+ TOOL: " in output
    assert "+ arg=NAME=PATTERN for=TIME high-risk tainted note=TEXT call list: its options." in output


def test_plain_text_mode_asks_for_patterns_only_where_they_count(talk: Talker, hosts: Hosts) -> None:
    hosts.prepared(Case("", "allow", ONE_CALL, stopped, ()))
    output = talk(
        "+ call\nknown\n\n+\nl\nto=x\n\n2h\n+ list\n\nq\n", "resume", "r", "--plain", "--as", "ann"
    ).out
    assert output.count("Arguments, as path=docs/*; empty: any:") == 1
    assert "a2: send with exactly copies=2, to=ann@box, by ann: “known”" in output
    assert "a3: send with to=x, until " in output
