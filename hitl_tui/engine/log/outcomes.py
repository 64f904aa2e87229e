"""Results of nodes: errors, model and tool calls, output, and branches of maps, parallels and subgraphs.

Units are those of `records`.

Specified in docs/spec/branches.md and docs/spec/log.md.
"""

from base64 import b64decode
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.declared import Declaration
from hitl_tui.engine.log.requests import When
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.log.units import MESSAGE, Duration, Maybe, about
from hitl_tui.errors import ValueRejected

_MOST_TOKENS = 1 << 53
BranchStatus = Literal["ok", "failed", "cancelled", "unneeded"]


class LocalValue(msgspec.Struct, frozen=True):
    """A local variable's value when its frame was left, as text."""

    name: Annotated[str, about("The name of the local variable.")]
    text: Annotated[str, about("The value, shortened; `[private]` if it is that of a private channel.")]


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frame of the user's code, or a number of consecutive frames of a library.

    Args:
        file: "" for frames of a library.
        first: the number of the first of `lines`.
    """

    file: Annotated[Maybe, about("The file; null for frames of a library.")] = ""
    line: Annotated[int, about("The current line.")] = 0
    function: Annotated[Maybe, about("The function with its parameters.")] = ""
    first: Annotated[int, about("The number of the first of `lines`.")] = 1
    lines: Annotated[tuple[str, ...], about("The source lines around it.")] = ()
    values: Annotated[tuple[LocalValue, ...], about("The local variables.")] = ()
    library: Annotated[Maybe, about("The library that the frames belong to.")] = ""
    count: Annotated[int, about("The number of library frames.")] = 0


class ErrorInfo(msgspec.Struct, frozen=True):
    """A node's failure; `details` is its traceback, `frames` are the frames of the user's code."""

    node: Annotated[str, about("The node; empty if no node is to blame.")]
    attempt: Annotated[int, about("The number of its last attempt, from 1.")]
    title: Annotated[str, about("The kind of failure.")]
    message: Annotated[str, about("What went wrong, and where.")]
    hint: Annotated[str, about("How to fix it; empty if there is no hint.")] = ""
    details: str = ""
    channel: Annotated[Maybe, about("The channel whose value must be fixed.")] = ""
    frames: Annotated[
        tuple[Frame, ...],
        about("The frames of your code that led to it, innermost last, with local variables."),
    ] = ()


class ModelUse(Declaration, frozen=True):
    """Tokens and cost of one model call; `cost` in US dollars, None if the price is unknown."""

    agent: Annotated[str, about("The agent.")]
    provider: Annotated[str, about("The provider.")]
    model: Annotated[str, about("The model.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[float | None, about("US dollars; null where the price is unknown.")]

    refusal = ValueRejected

    def check(self) -> None:
        """Refuse negative or absurdly large numbers."""
        counted = all(0 <= count < _MOST_TOKENS for count in (self.tokens_in, self.tokens_out))
        if not counted or (self.cost is not None and self.cost < 0):
            raise ValueRejected(
                f"{self!r:.200}",
                "tokens are whole numbers and the cost US dollars, None where it is unknown; none is below 0",
            )

    def __post_init__(self) -> None:
        # A store gives it back as a float, and the hash must be the same.
        if type(self.cost) is int:
            with suppress(OverflowError):
                msgspec.structs.force_setattr(self, "cost", float(self.cost))


def rough_tokens(text: str) -> int:
    """Estimate the tokens of `text`: four characters each, the usual rule of thumb."""
    return -(-len(text) // 4)


ESTIMATED: Final = "estimated"
"""Provider of a model call that only its caller knows, so its tokens are an estimate."""


class ToolUse(msgspec.Struct, frozen=True):
    """One call of a tool by an agent; `duration` in microseconds.

    Args:
        arguments: text if they could not be read, or are too long to be kept whole.
        result, error: cut if long; neither is set if the tool returned no text.
        attempt: the node's attempt.
        path: the branch it was made for, "" for a plain node.
        updates: how many updates of channels it made.
    """

    agent: Annotated[str, about("The calling agent.")]
    tool: Annotated[str, about("The tool.")]
    arguments: Annotated[Any, about("The arguments; text if they are long.")]
    result: Annotated[str | None, about("The result.")] = None
    error: Annotated[str | None, about("The error, if it failed.")] = None
    duration: Annotated[Duration, about("Seconds.")] = 0
    attempt: Annotated[int, about("The attempt of the node.")] = 1
    path: Annotated[Maybe, about("The branch.")] = ""
    updates: Annotated[int, about("The number of channel updates that it made.")] = 0


class StreamedText(msgspec.Struct, frozen=True):
    """The output of one writer in a step; of long output only the beginning and the end are kept.

    Args:
        agent: who wrote it, "" for the node itself.
        path: the branch it was written in, "" for a plain node.
        attempt: the node's attempt.
        left_out: the number of characters between `text` and `end` that were not kept.
        replies: of an agent, for each reply of its model: its number of characters and of tool calls.
    """

    agent: Annotated[Maybe, about("The agent.")]
    path: Annotated[Maybe, about("The branch.")]
    attempt: Annotated[int, about("The attempt of the node.")]
    text: Annotated[str, about("The text; only the beginning if it is long.")]
    left_out: Annotated[int, about("The number of characters left out after that.")] = 0
    end: Annotated[Maybe, about("The end of a long text.")] = ""
    replies: Annotated[
        tuple[tuple[int, int], ...],
        about("For each reply of an agent's model: its number of characters and of tool calls."),
    ] = ()

    @property
    def size(self) -> int:
        """The number of characters kept."""
        return len(self.text) + len(self.end)


class KeptArtifact(msgspec.Struct, frozen=True):
    """An artifact that a node produced besides its updates, kept with the step.

    Args:
        body: the text, or the bytes in base64.
        binary: whether `body` is bytes.
        path: the branch it came from, "" for a plain node.
    """

    name: Annotated[str, about("The artifact's name.")]
    media_type: Annotated[str, about("The media type, such as `text/markdown`.")]
    body: str
    binary: Annotated[bool, about("Whether it is bytes rather than text.")] = False
    path: Annotated[Maybe, about("The branch.")] = ""

    @property
    def content(self) -> bytes:
        """The artifact's content as bytes; raises `ValueError` if it was damaged."""
        return b64decode(self.body, validate=True) if self.binary else self.body.encode()


class Compensation(msgspec.Struct, frozen=True):
    """How to undo what a node did: the name of a handler and its arguments.

    `path` names the branch it came from, "" for a plain node.
    """

    handler: str
    args: Any = None
    path: str = ""


class KeptAnswer(msgspec.Struct, frozen=True):
    """An answer to a question inside a node, kept until the node is done.

    Args:
        request_hash: of the request that was answered; the answer applies to no other.
        n: the number of its ledger entry.
        key: the request's own name among those of the node, "" if it has none.
    """

    request_hash: str
    value: Any
    n: int
    key: str = ""


HOLDS: Final = "holds"
"""Key in the data of an answer to a gate: `PassedGate.holds`, if it differs from the answered hash."""


HASHED: Final = "hashed"
"""Key in the data of a request: what its hash covers besides the other fields of the entry."""


class PassedGate(msgspec.Struct, frozen=True):
    """A question before or after a node that has been answered, so that the run may continue.

    Args:
        request_hash: of the request that was answered.
        holds: what its hash must still be when the run continues: that of the same request once the answer's
            own values are set.
        n: the ledger entry that has the answer.
        policy: "on_taint" where it was the node's policy that asked.
    """

    node: str
    when: When
    request_hash: str
    holds: str
    n: int
    policy: Literal["", "on_taint"] = ""


class BranchOutcome(msgspec.Struct, frozen=True):
    """Outcome of one branch of a map or a parallel, or of a subgraph's run.

    Args:
        path: as in the branch's records: `scan[0]`, `group/member`, `team#1`.
        name: the map's node, the member, or the subgraph's node.
        index: of the item, or in the list of members.
        status: "failed" contributes no updates; "cancelled" was stopped while it ran, because the others were
            enough for the join; "unneeded" had not started by then.
        duration: includes waits between attempts.
    """

    path: Annotated[str, about("The branch's path, such as `scan[2]`.")]
    name: Annotated[str, about("The node of the branch.")]
    index: Annotated[int, about("Its index, from 0.")]
    status: Annotated[BranchStatus, about("How it ended; `unneeded` if the other branches were enough.")]
    error: Annotated[ErrorInfo | None, MESSAGE, about("Why it failed.")] = None
    attempts: Annotated[int, about("The number of attempts.")] = 0
    duration: Annotated[Duration, about("Seconds.")] = 0
    overridden: Annotated[tuple[str, ...], about("Channels in which a later branch replaced its value.")] = ()
    thread: Annotated[Maybe, about("The thread of a subgraph's run.")] = ""


class ChildLink(msgspec.Struct, frozen=True):
    """A subgraph's thread, and how much of its spending the parent has counted.

    `uses` are its model calls, reported from here until the parent's step has them.
    """

    thread_id: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    cost_known: bool = True
    uses: tuple[ModelUse, ...] = ()


class BranchState(msgspec.Struct, frozen=True):
    """Progress of a branch, kept in the cursor until its step is committed: no work or answer is lost.

    Args:
        item: the hash of the branch's item; if the item changes, the branch starts over.
        answers: answers to requests inside it.
        outcome: how it ended, None while it has to run (again).
        updates: (channel, update, the tool that made it or ""), in order.
        child: the thread that a subgraph runs in.
    """

    path: str
    item: str = ""
    answers: tuple[KeptAnswer, ...] = ()
    outcome: BranchOutcome | None = None
    updates: tuple[tuple[str, Any, str], ...] = ()
    text: str = ""
    attempt: int = 1
    read: tuple[str, ...] = ()
    lineage: Lineage | None = None
    compensation: Compensation | None = None
    artifacts: tuple[KeptArtifact, ...] = ()
    child: ChildLink | None = None
