"""Write a pytest of a recorded step.

It holds the state before the step, the replies of its models and tools, and the updates and the route that
must result. Without @STEP it is the newest step. If a node failed after it, it is that node, and the test
expects the error. Nothing is run. A subcommand prints the test.

    hitl-tui test r1@2 > test_r1.py
    hitl-tui test r1 --graph flow.py:graph
"""

from __future__ import annotations

from typing import Annotated, Final

from hitl_tui.engine.commands import WriteTest
from hitl_tui.engine.log.units import about
from hitl_tui.new_files import file_name
from hitl_tui.verbs.conversation import Ask, AskChoice, AskField, At, Do, Save, Talk, Verb
from hitl_tui.view.actions import Action, Situation, has_steps, when_open
from hitl_tui.view.shapes import Document

_GRAPH: Final = AskField(
    "graph",
    "the graph, as flow.py:graph",
    about="The graph to build, if the thread's record names none.",
    metavar="GRAPH",
    required=True,
)
_LEAVE: Final = AskChoice("leave", "l", "write no test")
_PRIVATE: Final = AskChoice(
    "private",
    "p",
    "include private values",
    "this is logged",
    flag="Include private values; this is logged.",
)


class TestDocument(Document, frozen=True):
    """`test`: a step as a test."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int | None, about("The step given; null for the newest.")]
    text: Annotated[str, about("The test as a Python file.")]


@when_open
def _disabled(now: Situation) -> str:
    return now.refusal(WriteTest) or has_steps(now)


async def _talk(at: At) -> Talk:
    """Write the test; ask where the graph is and about private values only if that matters."""
    from hitl_tui.engine.audit.step_test import GraphUnnamed, PrivateInTest

    graph, private = at.given.get("graph", ""), False
    while True:
        try:
            text = yield Do(WriteTest(at.step, graph, private, at.actor))
            break
        except GraphUnnamed as error:
            reply = yield Ask(
                "Where is the graph?",
                (error.message,),
                (AskChoice("write", "w", "write the test"),),
                (_GRAPH,),
            )
            if reply is not None and not reply.text("graph"):
                raise
        except PrivateInTest as error:
            reply = yield Ask("Include private values?", (error.message,), (_LEAVE, _PRIVATE))
            if reply is not None and reply.choice == _LEAVE.name:
                raise
            private = True
        if reply is None:
            return
        graph = reply.text("graph") or graph
    step = (await at.driver.snapshot()).progress.head if at.step is None else at.step
    thread = file_name(at.driver.thread_id, "thread").replace("-", "_").replace(".", "_")
    document = TestDocument(thread=at.driver.thread_id, step=at.step, text=text)
    yield Save(f"test_{thread}_{step}.py", text, "text/x-python", "Test", document)


VERB = Verb(
    WriteTest,
    _talk,
    Action(
        "look.test",
        "ctrl+t",
        "Test",
        "Write a pytest of the shown step, or of what failed",
        "Look",
        _disabled,
    ),
    after="look.items",
    options=(AskField("graph", _GRAPH.label, about=_GRAPH.about, metavar="GRAPH"),),
    choices=(_PRIVATE,),
    at_step=True,
)
