"""What the documents of reports hold: of comparisons, checks, costs, graphs, settings; see `shapes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hitl_tui.drivers.history import Asked, Sample, SearchHit
from hitl_tui.drivers.protocol import SourceState, StoredItem
from hitl_tui.engine.audit.anchor import Anchor
from hitl_tui.engine.audit.costs import CostLine, ModelUseTotal, NodeCost, StepCost
from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.audit.lineage import Arrival
from hitl_tui.engine.graph.description import EdgeInfo, GateInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.log.jobs import OrphanGraph, WorkerInfo, WorkerJob
from hitl_tui.engine.log.signing import SignedDecision
from hitl_tui.engine.log.taint import OnTaint, Taint
from hitl_tui.engine.log.threads import ThreadSize, ThreadSummary
from hitl_tui.engine.log.units import Inline, Maybe, about
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.view.blame import BlameLine
from hitl_tui.view.deletion import DeletedThread
from hitl_tui.view.diff_lines import Compared
from hitl_tui.view.first_difference import FirstDifference
from hitl_tui.view.followed import DecisionOutcome
from hitl_tui.view.notices import Notice
from hitl_tui.view.queue_facts import WaitingRequest
from hitl_tui.view.reading import Earlier
from hitl_tui.view.shapes import Document, From, shows
from hitl_tui.view.stats import Stats


@shows(ModelUseTotal)
class SpentShape(msgspec.Struct):
    """The model calls of an agent, a node or a step, and their cost."""

    calls: Annotated[int, about("Model calls.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[
        float | None,
        about("US dollars; null where a price is unknown."),
        From(lambda spent: spent.cost if spent.cost_known else None),
    ]
    cost_at_least: Annotated[float, about("US dollars of the calls with a known price."), From("cost")]


class Inside(msgspec.Struct):
    """The parts of a node: the graph of a subgraph, or the branches of a map or a parallel."""

    graph: Annotated[str | UnsetType, about("For a subgraph: the graph's name.")] = UNSET
    inputs: Annotated[
        dict[str, str] | UnsetType,
        about("For a subgraph: (outer channel, its channel), copied in at the start."),
    ] = UNSET
    outputs: Annotated[
        dict[str, str] | UnsetType,
        about("For a subgraph: (its channel, outer channel), copied out at the end."),
    ] = UNSET
    nodes: Annotated[tuple[NodeInfo, ...] | UnsetType, about("Its nodes.")] = UNSET
    edges: Annotated[tuple[EdgeInfo, ...] | UnsetType, about("Its edges.")] = UNSET
    over: Annotated[Maybe | UnsetType, about("For a map: the channel or path with its items.")] = UNSET
    join: Annotated[str | UnsetType, about("When the node is complete: `all`, `first` or `quorum(2)`.")] = (
        UNSET
    )
    max_concurrent: Annotated[
        int | UnsetType | None, about("How many branches run at once; null for all.")
    ] = UNSET
    max_items: Annotated[int | UnsetType | None, about("Most items; more are an error.")] = UNSET
    on_error: Annotated[
        str | UnsetType, about("What a failed branch does: `fail` the node, or `collect` and continue.")
    ] = UNSET
    members: Annotated[tuple[NodeInfo, ...] | UnsetType, about("The nodes of a parallel.")] = UNSET


def _inside(node: NodeInfo) -> Inside | UnsetType:
    if node.kind == "node":
        return UNSET
    if inner := node.graph:
        return Inside(inner.name, dict(node.inputs), dict(node.outputs), inner.nodes, inner.edges)
    return Inside(
        over=node.over,
        join=node.join,
        max_concurrent=node.max_concurrent,
        max_items=node.max_items,
        on_error=node.on_error,
        members=node.members,
    )


@shows(NodeInfo)
class NodeShape(msgspec.Struct):
    """A node as declared."""

    name: Annotated[str, about("The node's name.")]
    kind: Annotated[
        Literal["node", "map", "parallel", "subgraph"],
        about("The kind: `map`, `parallel`, `subgraph`; empty for a plain node."),
    ]
    reads: Annotated[tuple[str, ...], about("Channels that it may read; `*` for all.")]
    writes: Annotated[tuple[str, ...], about("Channels that it may write; `*` for all.")]
    external: Annotated[Maybe, about("The source of untrusted data that it brings in; empty for none.")]
    on_taint: Annotated[OnTaint, about("What happens before it reads tainted channels.")]
    attempts: Annotated[int, about("The number of attempts.")]
    timeout: Annotated[float | None, about("Seconds that an attempt may take.")]
    inside: Annotated[
        Inside | UnsetType,
        about("The parts of a map, a parallel or a subgraph; left out for a plain node."),
        From(_inside),
    ]


@shows(GraphInfo)
class GraphShape(msgspec.Struct):
    """A graph as declared."""

    name: Annotated[str, about("The graph's name.")]
    digest: Annotated[
        str, about("Hash of the declared graph and its code."), From(lambda graph: f"sha256:{graph.digest}")
    ]
    nodes: Annotated[tuple[NodeInfo, ...], about("Its nodes.")]
    edges: Annotated[tuple[EdgeInfo, ...], about("Its edges.")]
    channels: Annotated[tuple[ChannelInfo, ...], about("Its channels.")]
    inputs: Annotated[tuple[InputField, ...], about("The inputs that it asks for.")]
    gates: Annotated[tuple[GateInfo, ...], about("The gates before and after its nodes.")]


class TaintedChannel(msgspec.Struct):
    """A tainted channel, and how untrusted data got into it."""

    taint: Inline[Taint]
    lineage: Annotated[tuple[Arrival, ...], about("How taint reached the channel, oldest first.")]


class Place(msgspec.Struct):
    """A step of a thread."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The step.")]


class ThemeRow(msgspec.Struct):
    """A theme as `hitl-tui themes --json` lists it."""

    in_use: Annotated[bool, about("Whether it is in use.")]
    name: Annotated[str, about("The name, as in `--theme`.")]
    title: Annotated[str, about("The name for people.")]
    dark: Annotated[bool | None, about("Whether it is dark; null if it can't be used.")] = None
    file: Annotated[str | None, about("Its file.")] = None
    problem: Annotated[str | None, about("Why it can't be used, with file and line; empty if it can.")] = None


class KeyRow(msgspec.Struct):
    """An action of the screen."""

    id: Annotated[str, about("The action's id, as in `[keys]`.")]
    keys: Annotated[tuple[str, ...], about("Its keys, as in `[keys]`.")]
    configured: Annotated[bool, about("Whether you have changed them.")]
    group: Annotated[str, about("The group in the help.")]
    help: Annotated[str, about("What it does.")]


class Setting(msgspec.Struct):
    """A setting as `hitl-tui config --json` lists it."""

    name: Annotated[str, about("The key in the configuration file.")]
    value: Annotated[
        Any, about("The value in force; null for the default of the graph, the provider or the locale.")
    ]
    origin: Annotated[
        str, about("Where it comes from: `flag`, an environment variable, file and line, or `default`.")
    ]


class Finding(msgspec.Struct):
    """Something that `doctor` checked."""

    subject: Annotated[str, about("What was checked.", name="about")]
    value: Annotated[str, about("The result; of secret keys only whether they are set.")]
    ok: Annotated[bool, about("False if it is wrong.")] = True


class DiffDocument(Document, frozen=True):
    """`diff`."""

    a: Annotated[Place, about("The first step.")]
    b: Annotated[Place, about("The second step.")]
    equal: Annotated[bool, about("Whether all channels that may be compared are equal.")]
    channels: Annotated[tuple[Compared, ...], about("The channels of both states.")]
    first_difference: Annotated[
        FirstDifference | None, about("The first step at which two threads differ; null if there is none.")
    ] = None


class FindDocument(Document, frozen=True):
    """`find`."""

    thread: Annotated[str, about("The thread.")]
    text: Annotated[str, about("The text that was searched for.")]
    looked: Annotated[int, about("Steps that were searched, from the newest back.")]
    hits: Annotated[tuple[SearchHit, ...], about("The matches, newest first.")]


class WhenDocument(Document, frozen=True):
    """`when`."""

    thread: Annotated[str, about("The thread.")]
    expression: Annotated[str, about("The condition.")]
    answer: Inline[Asked]


class Series(msgspec.Struct):
    """An expression over a run."""

    expression: Annotated[str, about("The expression.")]
    samples: Annotated[tuple[Sample, ...], about("Its values, oldest first.")]


class ValuesDocument(Document, frozen=True):
    """`values`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The newest step that was evaluated.")]
    series: Annotated[tuple[Series, ...], about("The watched expressions.")]


class BlameDocument(Document, frozen=True):
    """`blame`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The step.")]
    channel: Annotated[str, about("The channel.")]
    path: Annotated[tuple[str, ...], about("The path in its value.")]
    complete: Annotated[bool, about("False if only the newest `--limit` steps were read.")]
    lines: Annotated[tuple[BlameLine, ...], about("Each part with its last writer.")]


class CostDocument(Document, frozen=True):
    """`cost`."""

    thread: Annotated[str, about("The thread.")]
    agents: Annotated[tuple[CostLine, ...], about("By agent and model.")]
    nodes: Annotated[tuple[NodeCost, ...], about("By node.")]
    steps: Annotated[tuple[StepCost, ...], about("By step.")]
    without_step: Annotated[ModelUseTotal, about("The cost of attempts that made no step.")]
    total: Annotated[ModelUseTotal, about("The total of all calls.")]


class TaintDocument(Document, frozen=True):
    """`taint`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The step.")]
    channels: Annotated[tuple[TaintedChannel, ...], about("Each tainted channel, with how taint reached it.")]


class GraphDocument(Document, frozen=True):
    """`graph`."""

    graph: Inline[GraphInfo]


class GraphRow(msgspec.Struct, frozen=True):
    """A graph that is known in a store."""

    name: Annotated[str, about("The graph's name.")]
    origin: Annotated[str, about("Where it was found.")]
    graph: Annotated[str, about("The argument for `run`.")]
    options: Annotated[Mapping[str, Any], about("The options it is built with.")]


class GraphsDocument(Document, frozen=True):
    """`graphs`."""

    graphs: Annotated[tuple[GraphRow, ...], about("Graphs of the newest threads first, then samples.")]


class ExportDocument(Document, frozen=True):
    """`export` to a file."""

    thread: Annotated[str, about("The thread.")]
    file: Annotated[str, about("The file.")]
    lines: Annotated[int, about("The number of lines.")]
    private: Annotated[bool, about("Whether it contains private values.")]
    threads: Annotated[tuple[str, ...], about("The threads of subgraphs that it contains.")]


class PageDocument(Document, frozen=True):
    """`export` of a page, a picture or a recording to a file."""

    thread: Annotated[str, about("The thread.")]
    file: Annotated[str, about("The file.")]
    bytes: Annotated[int, about("The number of characters.")]


class ImportDocument(Document, frozen=True):
    """`import`."""

    thread: Annotated[str, about("The thread's name in this store.")]
    file: Annotated[str, about("The file.")]
    threads: Annotated[tuple[str, ...], about("The threads of subgraphs that were imported with it.")]


class VerifyDocument(Document, frozen=True):
    """`verify`."""

    thread: Annotated[str, about("The thread.")]
    ok: Annotated[bool, about("Whether nothing is wrong.")]
    records: Annotated[int, about("The number of checked records.")]
    checkpoints: Annotated[int, about("The number of checked checkpoints.")]
    unchecked: Annotated[int, about("The number of records that `--strict` would reduce again.")]
    threads: Annotated[tuple[str, ...], about("The checked threads of subgraphs.")]
    missing: Annotated[tuple[str, ...], about("The threads of subgraphs that are not in the store.")]
    mismatches: Annotated[tuple[Mismatch, ...], about("What is wrong.")]
    decisions: Annotated[
        tuple[SignedDecision, ...] | None, about("Who signed which decision; only with `--signers`.")
    ]
    since: Annotated[int, about("The first checked step; an anchor vouches for the steps before it.")]
    notes: Annotated[tuple[str, ...], about("Not wrong, but worth knowing: answers that no request used.")]


class AnchorDocument(Document, frozen=True):
    """`anchor`."""

    anchor: Inline[Anchor]


class DeletedDocument(Document, frozen=True):
    """`deleted`: the store's own ledger."""

    entries: Annotated[tuple[DeletedThread, ...], about("The entries, newest first.")]
    more: Annotated[bool, about("Whether there are more entries than `--limit`.")]


class SizeDocument(Document, frozen=True):
    """`size`: what fills a store, the largest thread first."""

    used: Annotated[int, about("Bytes that the store takes on disk.")]
    free: Annotated[int, about("Bytes of these that `vacuum` could free.")]
    threads: Annotated[tuple[ThreadSize, ...], about("The threads, with the sizes of their own rows.")]
    more: Annotated[bool, about("Whether there are more threads than `--limit`.")]


class ReplayDocument(Document, frozen=True):
    """`replay`."""

    thread: Annotated[str, about("The thread.")]
    ok: Annotated[bool, about("Whether the current graph takes the recorded route.")]
    steps: Annotated[int, about("The number of replayed steps.")]
    records: Annotated[int, about("The number of updates that were reduced again.")]
    nodes: Annotated[int, about("The number of recorded results that were used.")]
    changed_reducers: Annotated[
        tuple[str, ...], about("The channels whose reducer gives another result now.")
    ]
    mismatches: Annotated[tuple[Mismatch, ...], about("The differences.")]


class ArtifactRow(msgspec.Struct, frozen=True):
    """An artifact of a step."""

    step: Annotated[int, about("The step.")]
    name: Annotated[str, about("The artifact's name.")]
    media_type: Annotated[str, about("The media type, such as `text/markdown`.")]
    size: Annotated[int, about("The size in bytes.")]
    sha256: Annotated[str, about("SHA-256 of the content.")]
    binary: Annotated[bool, about("Whether it is bytes rather than text.")]
    path: Annotated[Maybe, about("The branch.")]


class ArtifactsDocument(Document, frozen=True):
    """`artifacts`."""

    thread: Annotated[str, about("The thread.")]
    artifacts: Annotated[tuple[ArtifactRow, ...], about("The artifacts, oldest first.")]
    body: Annotated[Maybe, about("The content, if one was named: the text, or the bytes in base64.")] = ""


class ReadHeading(msgspec.Struct, frozen=True):
    """A heading of a text."""

    level: Annotated[int, about("Its level, from 1.")]
    text: Annotated[str, about("Its text.")]


class ReadDocument(Document, frozen=True):
    """`read`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The step.")]
    channel: Annotated[str, about("The channel.")]
    version: Annotated[int, about("The version of the text, from 1; 0 if unknown.")]
    headings: Annotated[tuple[ReadHeading, ...], about("Its headings, in order.")]
    changes: Annotated[int, about("How many places have changed.")]
    since: Annotated[str, about("The version that it is compared with, empty for none.")]
    comments: Annotated[tuple[Earlier, ...], about("The comments on its last version.")]


class ItemsDocument(Document, frozen=True):
    """`items`."""

    items: Annotated[tuple[StoredItem, ...], about("The threads, in the store's order.")]


class ThemesDocument(Document, frozen=True):
    """`themes`."""

    themes: Annotated[tuple[ThemeRow, ...], about("Built-in themes and yours.")]
    directory: Annotated[str, about("The folder for your themes.")]


class KeysDocument(Document, frozen=True):
    """`keys`."""

    keys: Annotated[tuple[KeyRow, ...], about("All actions.")]
    problems: Annotated[tuple[str, ...], about("The problems in `[keys]`, each with its place.")]


class ConfigDocument(Document, frozen=True):
    """`config`."""

    config: Annotated[tuple[Setting, ...], about("All settings.")]
    file: Annotated[str, about("The configuration file.")]
    file_exists: Annotated[bool, about("Whether the file exists.")]


class DoctorDocument(Document, frozen=True):
    """`doctor`."""

    doctor: Annotated[tuple[Finding, ...], about("The checks.")]
    ok: Annotated[bool, about("Whether all checks passed.")]


class ThreadsDocument(Document, frozen=True):
    """`threads`, newest first."""

    threads: Annotated[tuple[ThreadSummary, ...], about("The threads.")]
    more: Annotated[bool, about("Whether there are more threads than `--limit`.")]
    requests: Annotated[
        tuple[WaitingRequest, ...],
        about("All their requests, most urgent first; with `--waiting` in the given order."),
    ]
    sources: Annotated[
        tuple[SourceState, ...], about("The sources of the inbox; empty for a single store.")
    ] = ()


class DecisionLogDocument(Document, frozen=True):
    """`decisions`."""

    decisions: Annotated[tuple[DecisionOutcome, ...], about("The decisions, newest first.")]
    looked: Annotated[int, about("The number of decisions that were searched.")]
    more: Annotated[bool, about("Whether older ones were not searched, because of `--limit`.")]


class StatsDocument(Document, frozen=True):
    """`stats`."""

    stats: Inline[Stats]


class NoticeDocument(Document, frozen=True):
    """`watch`, and what a command for notices gets on its standard input."""

    notice: Inline[Notice]


class WorkersDocument(Document, frozen=True):
    """Who advances threads, and what is to be done: `workers`."""

    workers: Annotated[tuple[WorkerInfo, ...], about("The live workers.")]
    jobs: Annotated[tuple[WorkerJob, ...], about("Running jobs, then queued ones in order.")]
    orphans: Annotated[tuple[OrphanGraph, ...], about("The graphs that threads wait for and no worker has.")]
    running: Annotated[int, about("The number of threads that run at workers.")]
    queued: Annotated[int, about("The number of threads that wait for a worker.")]
    later: Annotated[int, about("The number of threads that wait for a later time.")]
