"""Graph files for tests of verbs, and what brings their threads to where a verb can be used."""

from __future__ import annotations

from pathlib import Path

from hitl_tui.loading.code import forget_code
from tests.support.commands import App

COUNTING = """
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.log.records import Limits
channels = {"n": Channel(0), "word": Channel("")}
graph = StateGraph(channels, name="counting").add_node("a", lambda state: {"n": state["n"] + 1})
graph = graph.add_edge(START, "a").add_conditional_edge("a", lambda state: "on", {"on": "a", "off": END})
graph = graph.compile(limits=Limits(max_iterations=2))
"""
"""A graph that counts until its limit of two nodes stops it."""

UNTRUSTED = """
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({"page": Channel(""), "sent": Channel("")}, name="policy")
graph.add_node("fetch", lambda state: {"page": "hello"}, external="web")
graph.add_node("send", lambda state: {"sent": state["page"]}, on_taint="block")
graph = graph.add_edge(START, "fetch").add_edge("fetch", "send").add_edge("send", END).compile()
"""
"""A graph that fails until somebody trusts its channel `page`."""

PRIVATE = """
from hitl_tui import END, START, Channel, StateGraph
graph = StateGraph({"name": Channel("", visibility="private")}, name="secret")
graph = graph.add_node("a", lambda state: {"name": "Ada"}).add_edge(START, "a").add_edge("a", END).compile()
"""
"""A graph with a private channel, `name`."""

ASKING = """
from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph
choices = [GateChoice("approve", "print it", "a"), GateChoice("revise", "send back", "r", "required")]
graph = StateGraph({"text": Channel("")}, name="memo").add_node("write", lambda state: {"text": "A memo."})
graph = graph.add_edge(START, "write").add_edge("write", END)
graph = graph.compile(interrupt_after=[Gate("write", "Print it?", choices)])
"""
"""A graph that asks a question."""
ASKED = "292acb457157"
"""The id of the question, in the thread `r`."""


ASKING_FOR_CALLS = """
from hitl_tui import END, START, Channel, StateGraph
calls = [{"name": "send", "args": {"to": "ann@box", "copies": 2}}, {"name": "drop", "args": {"n": 1}}]
asked = {"action_requests": calls, "review_configs": []}
graph = StateGraph({"answer": Channel(None)}, name="calling")
graph.add_node("ask", lambda state, config: {"answer": config.interrupt(asked)})
graph = graph.add_edge(START, "ask").add_edge("ask", END).compile()
"""
"""A graph that asks for the approval of two calls of tools."""
ONE_CALL = ASKING_FOR_CALLS.replace(', {"name": "drop", "args": {"n": 1}}', "")
"""A graph that asks for that of the first one."""


ASKING_A_MODEL = """
from hitl_tui import END, START, Agent, Channel, ScriptedModel, StateGraph
graph = StateGraph({"text": Channel("")}, name="asking").add_node("write", lambda state: {"text": "done"})
agent = Agent("writer", ScriptedModel(["Hills."], pace=0))
graph = graph.add_edge(START, "write").add_edge("write", END).compile(agents={"writer": agent})
"""
"""A graph that has an agent."""


CHATTING = """
from hitl_tui import END, START, Agent, Channel, ScriptedModel, StateGraph
graph = StateGraph({"text": Channel("")}, name="chatting")
graph.add_node("write", lambda state, config: {"text": config.agents["writer"].chat("Write.")})
graph = graph.add_edge(START, "write").add_edge("write", END)
model = ScriptedModel(["Hills."] * 9, pace=0)
agents = {name: Agent(name, model, "Be clear.") for name in ("editor", "writer")}
graph = graph.compile(agents=agents)
"""
"""A graph in whose first step the second of its agents writes."""


REMEMBERING = """
from hitl_tui import END, START, Channel, StateGraph
class Clerk:
    def __init__(self):
        self.turns = [{"role": "user", "content": "Hello."}]
    def set_turns(self, turns):
        self.turns = turns
graph = StateGraph({"n": Channel(0)}, name="remembering").add_node("a", lambda state: {"n": 1})
graph = graph.add_edge(START, "a").add_edge("a", END)
graph = graph.compile(agents={"clerk": Clerk(), "guide": Clerk()})
"""
"""A graph with agents that have turns from the start, in every process."""


def changed(app: App) -> None:
    """Run the thread `r` of `flow.py` until something stops it, then change the code of its node."""
    stopped(app)
    file = Path("flow.py")
    file.write_text(file.read_text().replace("+ 1}", "+ 2}"))
    forget_code(file.parent.absolute())


ENDLESS = """
import asyncio
from hitl_tui import END, START, Channel, Limits, StateGraph
async def a(state):
    await asyncio.sleep(0.01)
    return {"n": state["n"] + 1}
graph = StateGraph({"n": Channel(0)}, name="endless").add_node("a", a).add_edge(START, "a")
graph = graph.add_conditional_edge("a", lambda state: "on", {"on": "a", "off": END})
graph = graph.compile(limits=Limits(max_iterations=None))
"""
"""A graph that runs until somebody pauses it."""


UNDOABLE = """
from hitl_tui import END, START, Channel, NodeResult, StateGraph
graph = StateGraph({"n": Channel(0)}, name="undoable")
graph.add_node("a", lambda state: NodeResult({"n": 1}, compensation=("zero", 1)))
graph.add_compensation("zero", lambda state, config, args: {"n": 0})
graph = graph.add_edge(START, "a").add_edge("a", END).compile()
"""
"""A graph whose node can be undone."""


def undone(app: App) -> None:
    """Run the thread `r` of `flow.py`, then undo what its node did."""
    stopped(app)
    app.expect(0, "rollback", "r", "--yes", "--as", "bob")


def stopped_before_a(app: App) -> None:
    """Start the thread `r` of `flow.py`, and stop before its node `a`."""
    app("run", "flow.py", "--headless", "--thread", "r", "--as", "ann", "--break", "a")


def stopped(app: App) -> None:
    """Run the thread `r` of `flow.py` until something stops it."""
    app("run", "flow.py", "--headless", "--thread", "r", "--as", "ann")


def claimed(app: App) -> None:
    """Let "bob" claim the request of the thread `r`."""
    stopped(app)
    app.expect(0, "claim", "r", "--as", "bob")


def allowing(app: App) -> None:
    """Allow calls of a tool in the thread `r`."""
    stopped(app)
    app.expect(0, "allow", "r", "send", "--as", "bob")


def claimed_by_ann(app: App) -> None:
    """Let "ann" claim it."""
    stopped(app)
    app.expect(0, "claim", "r", "--as", "ann")


def changed_agent(app: App) -> None:
    """Give the agent "writer" of the thread `r` another model and temperature."""
    stopped(app)
    app.expect(0, "change-agent", "r", "writer", "model=demo/advisor", "temperature=1", "--as", "bob")
