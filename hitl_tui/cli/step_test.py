"""`test`: a recorded step as a pytest."""

from __future__ import annotations

import click

from hitl_tui.cli.langgraph import keeps_langgraph
from hitl_tui.cli.opening import find_thread, signer_of
from hitl_tui.cli.options import complete_thread
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode, UsageError


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.option("--graph", metavar="GRAPH", help="The graph to build, if the thread's record names none.")
@click.option("--private", is_flag=True, help="Include private values; this is logged.")
@on_log(acts=True)
def test(opened: OpenStored, *, place: str, graph: str | None, private: bool) -> ExitCode:
    """Write a pytest of a recorded step.

    Prints the test: the state before the step, the replies of its models and tools, and the updates and the
    route that must result. Without @STEP it is the newest step. If a node failed after it, it is that node,
    and the test expects the error. Nothing is run.
    """
    from hitl_tui.cli.inputs import split_place
    from hitl_tui.cli.reports import TestDocument
    from hitl_tui.engine.audit.step_test import step_test

    if keeps_langgraph(opened.store):
        from hitl_tui.drivers.langgraph.driver import NO_TEST

        raise UsageError("a step of a LangGraph graph can't be written as a test", NO_TEST)
    name, step = split_place(opened.store, place)
    name = find_thread(opened.store, name)
    text = step_test(opened.store, name, step, graph=graph or "", private=private)
    if private:
        _note(opened, name, place)
    if opened.as_json:
        emit(TestDocument(thread=name, step=step, text=text))
    else:
        say(text.removesuffix("\n"))
    return ExitCode.DONE


def _note(opened: OpenStored, thread: str, place: str) -> None:
    """Write down who takes private values out; a thread without any needs no note."""
    from hitl_tui.engine.commands import NoteExport, execute
    from hitl_tui.engine.thread.session import Session
    from hitl_tui.stores.transfer import private_names

    if names := private_names(opened.store, thread):
        signer = signer_of(opened.settings)
        session = Session.recorded(opened.store, thread, with_state=False, signer=signer)
        with session.writing():
            execute(session, NoteExport(tuple(sorted(names)), opened.settings.reviewer, f"a test of {place}"))
