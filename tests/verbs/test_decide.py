"""Deciding several requests at once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
from msgspec.structs import replace

from hitl_tui import SQLiteCheckpointer
from hitl_tui.cli.opening import hub_over
from hitl_tui.cli.verbs import command_of
from hitl_tui.config import load_settings
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.policies import read_policy
from hitl_tui.engine.commands import Answer, Command
from hitl_tui.verbs import verbs
from hitl_tui.verbs.conversation import Ask, AskReply, At, BeginEach, Do, Work, advance
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.verbs.flows import ASKED, ASKING, stopped
from tests.verbs.hosts import Case, Hosts, each_host

RULES = "[[rule]]\nname = 'memos'\nwhen = \"graph == 'memo'\"\nanswer = 'approve'\nnote = 'as agreed'\n"


def with_rules(app: App) -> None:
    """Write a policy beside the thread `r`."""
    stopped(app)
    Path("policy.toml").write_text(RULES)


def by_rules(directory: Path) -> Answer:
    """What the policy sends."""
    file = directory / "policy.toml"
    file.write_text(RULES)
    policy = read_policy(file)
    (rule,) = policy.rules
    value = {"choice": "approve", "text": rule.note}
    return Answer(ASKED, value, 1, "ann", policy.note(rule), policy=policy.named(rule))


with TemporaryDirectory() as directory:
    BY_RULES = by_rules(Path(directory))

QUEUE: dict[str, Any] = {
    "keys": ("Q",),
    "ready": "1 WAITS FOR YOU",
    "selected": ("threads", "answer", "filter"),
}
"""How the screen comes to the queue, where the thread is selected."""

test_each_host = each_host(
    Case("one answer", "decide", ASKING, stopped, (Answer(ASKED, "approve", 1, "ann"),),
         {"threads": "r", "answer": "approve"}, listed=0, **QUEUE),
    Case("with every field", "decide", ASKING, stopped,
         (Answer(ASKED, {"choice": "revise", "text": "shorter"}, 1, "ann", "shorter"),),
         {"threads": "r", "filter": "graph:memo", "answer": "revise", "note": "shorter"}, listed=1, **QUEUE),
    Case("by rules", "decide", ASKING, with_rules, (BY_RULES,), {"threads": "r", "policy": "policy.toml"},
         choice="list", key="p", listed=0, **QUEUE),
)  # fmt: skip


def two(app: App) -> None:
    """Run the threads `r` and `s` until they ask."""
    stopped(app)
    app("run", "flow.py", "--headless", "--thread", "s", "--as", "ann")


@pytest.fixture
def both(app: App, hosts: Hosts) -> App:
    """A store in which the threads `r` and `s` ask."""
    hosts.prepared(Case("", "decide", ASKING, two, ()))
    return app


@pytest.fixture
def bob_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob answers the request of the thread `s` just before anybody else does."""
    execute = LocalDriver.execute

    async def first(driver: LocalDriver, command: Command[Any]) -> Any:
        if isinstance(command, Answer) and driver.thread_id == "s" and command.actor != "bob":
            await execute(driver, replace(command, actor="bob", seen=b""))
        return await execute(driver, command)

    monkeypatch.setattr(LocalDriver, "execute", first)


@pytest.mark.usefixtures("bob_first")
def test_what_somebody_else_answered_first_is_refused_and_the_others_are_decided(both: App) -> None:
    order = ("decide", "r", "s", "--answer", "approve", "--yes", "--as", "ann")
    decisions = both.expect(4, *order, "--json").document["decisions"]
    outcomes = {each["thread"]: (each["outcome"], each["why"]) for each in decisions}
    assert outcomes["r"] == ("decided", None)
    refused, why = outcomes["s"]
    assert refused == "refused"
    assert "has been answered already" in why
    answers = [entry["actor"] for entry in both.expect(0, "log", "s", "--json").document["decisions"]]
    assert "bob" in answers


@pytest.mark.usefixtures("bob_first")
def test_a_refusal_is_a_line_of_its_own(both: App, talk: Talker) -> None:
    words = "D r s answer=approve\nyes\nq\n"
    output = talk(words, "resume", "r", "--plain", "--as", "ann").out
    assert "s: Print it?: print it" in output.partition("Decide these 2?")[0]
    assert "s: Print it?: refused: request" in output
    assert output.count("r: Print it?") == 1
    assert "1 decided, 1 refused." in output


@pytest.mark.parametrize("dry_run", [True, False])
def test_requests_that_are_left_are_listed_though_none_is_decided(both: App, dry_run: bool) -> None:
    words = ("--filter", "", "--answer", "revise", *(["--dry-run"] if dry_run else []))
    document = both.expect(3, "decide", *words, "--json").document
    assert [(each["thread"], each["outcome"]) for each in document["decisions"]] == [
        ("r", "left"),
        ("s", "left"),
    ]
    assert document["dry_run"] is dry_run
    assert "0 would be decided, 2 not" in both.expect(3, "decide", *words).out


@pytest.fixture
def one_claimed(both: App) -> None:
    """Bob has claimed the request of the thread `s`."""
    both.expect(0, "claim", "s", "--as", "bob", "--for", "15m")


@pytest.mark.usefixtures("one_claimed")
async def test_what_was_left_in_the_list_stays_left_whatever_ends_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_over(SQLiteCheckpointer(tmp_path / "prepared.db"), load_settings({}))
    talk = verbs()["decide"].load().talk(At(None, hub, "ann", given={"filter": "", "answer": "approve"}))
    work = await advance(talk)
    assert isinstance(work, Work)
    ask = await advance(talk, await work.run(lambda done, of: True))
    assert isinstance(ask, Ask)
    assert ask.listing is not None
    assert [(row.name, row.state) for row in ask.listing.rows] == [("r", "would"), ("s", "left")]
    later = hub.now() + 60 * 60 * 1_000_000
    monkeypatch.setattr(LocalHub, "now", lambda self: later)
    each = await advance(talk, AskReply("decide", {}))
    assert isinstance(each, BeginEach)
    (only,) = each.talks
    do = await advance(only)
    assert isinstance(do, Do)
    assert do.driver is not None
    assert do.driver.thread_id == "r"
    await only.aclose()
    await talk.aclose()
    await hub.close()


def test_nothing_is_decided_by_guessing(both: App) -> None:
    for words, says in (
        (("r",), "give --answer ID or --policy FILE"),
        (("r", "--answer", "approve", "--policy", "x.toml"), "give --answer ID or --policy FILE"),
        (("--answer", "approve"), "no requests were named"),
        (("1", "--answer", "approve"), "there is no thread '1'"),
        (("r", "--policy", "x.toml"), "x.toml"),
    ):
        assert says in both.expect(2, "decide", *words).err
    both.expect(0, "approve", "r")
    assert "nothing waits in thread 'r'" in both.expect(2, "decide", "r", "--answer", "approve").err


def test_a_shell_completes_the_threads(both: App) -> None:
    threads = command_of(verbs()["decide"]).params[0]
    with click.Context(click.Command("decide")) as context:
        assert [each.value for each in threads.shell_complete(context, "")] == ["s", "r"]
