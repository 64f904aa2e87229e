"""A reviewer of its own process, who decides what waits: `reviewing.py STORE NAME PEOPLE`.

It claims what takes two PEOPLE before it decides that; what takes one it answers at once, to be the first.
It says what it has decided, a line each, once that is stored; "ready" before the first.  With a fourth
argument it claims that thread's question, says so, and waits to be killed.
"""

from __future__ import annotations

import sys

from hitl_tui import Gate, GateChoice, GraphRunner, open_store
from hitl_tui.engine import commands
from hitl_tui.engine.commands import Answer, Claim
from hitl_tui.errors import AnswerRefused, StaleWriter, ThreadBusy
from hitl_tui.stores import Checkpointer
from tests.support.flows import line, say

CHOICES = [GateChoice("yes", "yes", values={"verdict": "approved"})]


def runner_on(store: Checkpointer, people: int = 2) -> GraphRunner:
    """One step, and a gate that so many people must pass."""
    gate = Gate("a", "go on?", CHOICES, quorum=people, one_account=True)
    return line(store, say("done"), interrupt_after=[gate])


def execute(runner: GraphRunner, thread: str, command: commands.Command[object]) -> bool:
    """Whether it was carried out; another one may have been faster, or be at the thread just now."""
    while True:
        session = runner.open(thread)
        try:
            with session.writing():
                commands.execute(session, command)
        except ThreadBusy:
            continue
        except (AnswerRefused, StaleWriter):
            return False
        return True


def main() -> None:
    """Go through what waits until nothing is left that this person may decide."""
    place, name, people, *claimed = sys.argv[1:]
    store = open_store(place)
    runner = runner_on(store, int(people))
    if claimed:
        request = runner.open(claimed[0]).cursor.pending[0]
        assert execute(runner, claimed[0], Claim(request.id, name))
        print("claimed", flush=True)
        sys.stdin.readline()
    print("ready", flush=True)
    sys.stdin.readline()
    left = True
    while left:
        left = False
        for row in store.threads("", 500, waiting=True):
            thread = row.info.thread_id
            for request in runner.open(thread).cursor.pending:
                if any(vote.actor == name for vote in request.votes):
                    continue
                left = True
                if people == "2" and not execute(runner, thread, Claim(request.id, name)):
                    continue
                if execute(runner, thread, Answer(request.id, "yes", request.step, name)):
                    print(thread, flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()
