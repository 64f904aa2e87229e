"""A chat with reducers: `add_messages` keeps the talk, `operator.add` counts, a plain key is replaced.

    hitl-tui run langgraph/chat --input 'messages=[["user", "What is a closure?"]]'

What each superstep's tasks wrote and what the reducers made of it stand in the pane of updates.  The model is
scripted: no key, no network.
"""

import operator
from typing import Annotated

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    turns: Annotated[int, operator.add]
    mood: str


REPLY = "A closure is a function together with the variables that were around it when it was made."


def chatbot(state: State) -> dict:
    used = {"input_tokens": 12, "output_tokens": 17, "total_tokens": 29}
    replies = iter([AIMessage(REPLY, usage_metadata=used)])
    model = GenericFakeChatModel(messages=replies, disable_streaming=True)  # pieces would lose what it used
    return {"messages": [model.invoke(state["messages"])], "turns": 1}


def judge(state: State) -> dict:
    return {"mood": "curious" if "?" in state["messages"][-2].text else "calm"}


def route(state: State) -> str:
    return "again" if state["turns"] < 2 and state["mood"] == "calm" else "done"


builder = StateGraph(State)
builder.add_node(chatbot)
builder.add_node(judge)
builder.add_edge(START, "chatbot")
builder.add_edge("chatbot", "judge")
builder.add_conditional_edges("judge", route, {"again": "chatbot", "done": END})

graph = builder.compile(name="chat")
