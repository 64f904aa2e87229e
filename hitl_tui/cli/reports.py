"""What the documents of reports hold: of comparisons, checks, costs, graphs, settings; see `shapes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hitl_tui.drivers.history import Asked, Sample, SearchHit
from hitl_tui.drivers.protocol import StoredItem
from hitl_tui.engine.audit.anchor import Anchor
from hitl_tui.engine.audit.costs import CostLine, ModelUseTotal, NodeCost, StepCost
from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.audit.lineage import Arrival
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.graph.description import EdgeInfo, GateInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.jobs import OrphanGraph, WorkerInfo, WorkerJob
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.requests import HandedOn
from hitl_tui.engine.log.signing import SignedDecision
from hitl_tui.engine.log.taint import OnTaint, Taint
from hitl_tui.engine.log.threads import Presence, ThreadSize, ThreadSummary
from hitl_tui.engine.log.units import Inline, Maybe, about
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.engine.thread.allowances import Allowance
from hitl_tui.stores.deletion import Kept, Leaving
from hitl_tui.view.blame import BlameLine
from hitl_tui.view.diff_lines import Compared
from hitl_tui.view.followed import DecisionOutcome
from hitl_tui.view.notices import Notice
from hitl_tui.view.parting import Parting
from hitl_tui.view.queue_facts import Planned, WaitingRequest
from hitl_tui.view.shapes import Document, From, shows


@shows(ModelUseTotal)
class SpentShape(msgspec.Struct):
    """What something has cost."""

    calls: Annotated[int, about("Model calls.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[
        float | None,
        about("US dollars; null where a price is unknown."),
        From(lambda spent: spent.cost if spent.cost_known else None),
    ]
    cost_at_least: Annotated[float, about("US dollars of those calls whose price is known."), From("cost")]


class Inside(msgspec.Struct):
    """What a node is made of: the graph of a subgraph, or what a map or a parallel runs, and how."""

    graph: Annotated[str | UnsetType, about("Of a subgraph: the graph's name.")] = UNSET
    inputs: Annotated[dict[str, str] | UnsetType, about("The outer graph's channel to its own.")] = UNSET
    outputs: Annotated[dict[str, str] | UnsetType, about("Its channel to the outer graph's.")] = UNSET
    nodes: Annotated[tuple[NodeInfo, ...] | UnsetType, about("Its nodes.")] = UNSET
    edges: Annotated[tuple[EdgeInfo, ...] | UnsetType, about("Its edges.")] = UNSET
    over: Annotated[
        Maybe | UnsetType, about("Of a map: the channel or path whose items it goes through.")
    ] = UNSET
    join: Annotated[str | UnsetType, about("As `all`, `first` or `quorum(2)`.")] = UNSET
    max_concurrent: Annotated[
        int | UnsetType | None, about("How many branches run at once; null for all.")
    ] = UNSET
    max_items: Annotated[int | UnsetType | None, about("More items are an error.")] = UNSET
    on_error: Annotated[
        str | UnsetType, about("`fail` where one failed branch fails the node, or `collect`.")
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

    name: Annotated[str, about("Its name.")]
    kind: Annotated[Literal["node", "map", "parallel", "subgraph"], about("What it is made of.")]
    reads: Annotated[tuple[str, ...], about("What it may read; `*` for all.")]
    writes: Annotated[tuple[str, ...], about("What it may write; `*` for all.")]
    external: Annotated[Maybe, about("What it brings in from outside.")]
    on_taint: Annotated[OnTaint, about("What happens before it reads what is tainted.")]
    attempts: Annotated[int, about("How often it is tried.")]
    timeout: Annotated[float | None, about("Seconds an attempt may take.")]
    inside: Annotated[
        Inside | UnsetType,
        about("What a map, a parallel or a subgraph is made of; not there for a plain node."),
        From(_inside),
    ]


@shows(GraphInfo)
class GraphShape(msgspec.Struct):
    """A graph as declared."""

    name: Annotated[str, about("Its name.")]
    digest: Annotated[str, about("Hash of what it declares."), From(lambda graph: f"sha256:{graph.digest}")]
    nodes: Annotated[tuple[NodeInfo, ...], about("Its nodes.")]
    edges: Annotated[tuple[EdgeInfo, ...], about("Its edges.")]
    channels: Annotated[tuple[ChannelInfo, ...], about("Its channels.")]
    inputs: Annotated[tuple[InputField, ...], about("What it asks for.")]
    gates: Annotated[tuple[GateInfo, ...], about("The questions before and after its nodes.")]


class TaintedChannel(msgspec.Struct):
    """A tainted channel and its way."""

    taint: Inline[Taint]
    lineage: Annotated[tuple[Arrival, ...], about("How it came, the oldest first.")]


class Place(msgspec.Struct):
    """A step of a thread."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The step.")]


class ThemeRow(msgspec.Struct):
    """A theme as `hitl-tui themes --json` lists it."""

    in_use: Annotated[bool, about("Whether it is the chosen one.")]
    name: Annotated[str, about("What `--theme` names.")]
    title: Annotated[str, about("What a person reads.")]
    dark: Annotated[bool | None, about("Whether it is dark; null where it can't be used.")] = None
    file: Annotated[str | None, about("Its file.")] = None
    problem: Annotated[str | None, about("Why it can't be used, with file and line.")] = None


class KeyRow(msgspec.Struct):
    """An action of the screen."""

    id: Annotated[str, about("What `[keys]` names.")]
    keys: Annotated[tuple[str, ...], about("Its keys, as `[keys]` writes them.")]
    configured: Annotated[bool, about("Whether they are your own.")]
    group: Annotated[str, about("Where the help lists it.")]
    help: Annotated[str, about("What it does.")]


class Setting(msgspec.Struct):
    """A setting as `hitl-tui config --json` lists it."""

    name: Annotated[str, about("Its key in the configuration file.")]
    value: Annotated[
        Any, about("What holds; null for the graph's, the provider's or the locale's own choice.")
    ]
    origin: Annotated[str, about("`flag`, an environment variable, file and line, or `default`.")]


class Finding(msgspec.Struct):
    """Something that was looked at."""

    subject: Annotated[str, about("What.", name="about")]
    value: Annotated[str, about("What was found; of keys only whether they are set.")]
    ok: Annotated[bool, about("False where it is wrong.")] = True


class DecisionsDocument(Document, frozen=True):
    """`decide`: what was decided of many requests, or would be."""

    decisions: Annotated[tuple[Planned, ...], about("The requests, those that would be decided first.")]
    dry_run: Annotated[bool, about("Whether nothing was to be done.")]


class AttendingDocument(Document, frozen=True):
    """`claim`, `unclaim`, `hand-over`: who is at a request."""

    thread: Annotated[str, about("The thread.")]
    request: Annotated[str, about("The request.")]
    step: Annotated[int, about("The step it is about.")]
    handed: Annotated[HandedOn | None, about("Whom it was passed on to.")]
    attending: Annotated[tuple[Presence, ...], about("Who looks at it, or has claimed it.")]


class DiffDocument(Document, frozen=True):
    """`diff`."""

    a: Annotated[Place, about("The first step.")]
    b: Annotated[Place, about("The second step.")]
    equal: Annotated[bool, about("Whether no channel that may be compared differs.")]
    channels: Annotated[tuple[Compared, ...], about("Every channel.")]
    parts: Annotated[Parting | None, about("Of two threads: where they part; null where they don't.")] = None


class FindDocument(Document, frozen=True):
    """`find`."""

    thread: Annotated[str, about("The thread.")]
    text: Annotated[str, about("What was looked for.")]
    looked: Annotated[int, about("Steps that were looked at, from the newest on.")]
    hits: Annotated[tuple[SearchHit, ...], about("The places where it was found, newest first.")]


class WhenDocument(Document, frozen=True):
    """`when`."""

    thread: Annotated[str, about("The thread.")]
    expression: Annotated[str, about("The condition.")]
    answer: Inline[Asked]


class Series(msgspec.Struct):
    """An expression over a run."""

    expression: Annotated[str, about("The expression.")]
    samples: Annotated[tuple[Sample, ...], about("What it was, oldest first.")]


class ValuesDocument(Document, frozen=True):
    """`values`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The newest step that was looked at.")]
    series: Annotated[tuple[Series, ...], about("Every expression.")]


class BlameDocument(Document, frozen=True):
    """`blame`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("At which step.")]
    channel: Annotated[str, about("The channel.")]
    path: Annotated[tuple[str, ...], about("The way into its value.")]
    complete: Annotated[bool, about("False where older steps were not looked at: `--limit`.")]
    lines: Annotated[tuple[BlameLine, ...], about("Each part with its last writer.")]


class CostDocument(Document, frozen=True):
    """`cost`."""

    thread: Annotated[str, about("The thread.")]
    agents: Annotated[tuple[CostLine, ...], about("By agent and model.")]
    nodes: Annotated[tuple[NodeCost, ...], about("By node.")]
    steps: Annotated[tuple[StepCost, ...], about("By step.")]
    without_step: Annotated[ModelUseTotal, about("What attempts cost that made no step.")]
    total: Annotated[ModelUseTotal, about("The sum of all calls.")]


class TaintDocument(Document, frozen=True):
    """`taint`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("At which step.")]
    channels: Annotated[tuple[TaintedChannel, ...], about("Each tainted channel and its way.")]


class AgentsDocument(Document, frozen=True):
    """`agents`."""

    thread: Annotated[str, about("The thread.")]
    agents: Annotated[tuple[AgentInfo, ...], about("The agents of the thread.")]


class GraphDocument(Document, frozen=True):
    """`graph`."""

    graph: Inline[GraphInfo]


class AllowancesDocument(Document, frozen=True):
    """`allow`: the calls of tools that need no approval."""

    thread: Annotated[str, about("The thread.")]
    allowances: Annotated[tuple[Allowance, ...], about("The allowances, of the threads around it, too.")]


class CopyDocument(Document, frozen=True):
    """`copy`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("Its newest step.")]
    what: Annotated[Literal["value", "diff", "card", "command"], about("What of it.")]
    text: Annotated[str, about("As it is copied: Markdown of a card.")]


class GraphRow(msgspec.Struct, frozen=True):
    """A graph that is known in a store."""

    name: Annotated[str, about("Its name.")]
    origin: Annotated[str, about("How it is known.")]
    graph: Annotated[str, about("What `run` takes.")]
    options: Annotated[Mapping[str, Any], about("With which options it was built.")]


class GraphsDocument(Document, frozen=True):
    """`graphs`."""

    graphs: Annotated[tuple[GraphRow, ...], about("Those of the newest threads first, then samples.")]


class RepeatsDocument(Document, frozen=True):
    """`fork`, `rerun` and `resume` with `--dry-run`."""

    thread: Annotated[str, about("The thread.")]
    repeats: Annotated[Repeats | None, about("What would run again; null where nothing would.")]
    moves: Annotated[
        str | None,
        about(
            "The LangGraph thread whose next turn, in another program, continues from the fork; else null."
        ),
    ] = None


class ForkDocument(Document, frozen=True):
    """`fork`, and `rerun` before it runs the fork."""

    thread: Annotated[str, about("The new thread.")]
    parent: Annotated[str, about("The thread it was made from.")]
    step: Annotated[int, about("At which step.")]


class ExportDocument(Document, frozen=True):
    """`export` to a file."""

    thread: Annotated[str, about("The thread.")]
    file: Annotated[str, about("The file.")]
    lines: Annotated[int, about("How many lines it has.")]
    private: Annotated[bool, about("Whether private values are in it.")]
    threads: Annotated[tuple[str, ...], about("The threads of subgraphs that are in it, too.")]


class PageDocument(Document, frozen=True):
    """`export` of a page, a picture or a recording to a file."""

    thread: Annotated[str, about("The thread.")]
    file: Annotated[str, about("The file.")]
    bytes: Annotated[int, about("How long it is.")]


class ImportDocument(Document, frozen=True):
    """`import`."""

    thread: Annotated[str, about("Its name here.")]
    file: Annotated[str, about("The file.")]
    threads: Annotated[tuple[str, ...], about("The threads of subgraphs that came along.")]


class VerifyDocument(Document, frozen=True):
    """`verify`."""

    thread: Annotated[str, about("The thread.")]
    ok: Annotated[bool, about("Whether all is as it should be.")]
    records: Annotated[int, about("Records that were checked.")]
    checkpoints: Annotated[int, about("Checkpoints that were checked.")]
    unchecked: Annotated[int, about("Records that `--strict` would reduce again.")]
    threads: Annotated[tuple[str, ...], about("The threads of subgraphs that were checked.")]
    missing: Annotated[tuple[str, ...], about("Those that are not in the store.")]
    mismatches: Annotated[tuple[Mismatch, ...], about("What is wrong.")]
    decisions: Annotated[
        tuple[SignedDecision, ...] | None, about("Who has signed what; with `--signers` alone.")
    ]
    since: Annotated[int, about("The first step that was checked; an anchor vouches for those before it.")]
    notes: Annotated[tuple[str, ...], about("Not wrong, but worth knowing: answers that were not used.")]


class AnchorDocument(Document, frozen=True):
    """`anchor`."""

    anchor: Inline[Anchor]


class DeletedThread(msgspec.Struct, frozen=True):
    """What the ledger of a store keeps of a thread."""

    thread: Annotated[str, about("The thread.")]
    entry: Inline[LedgerEntry]


class DeleteDocument(Document, frozen=True):
    """`delete` and `prune`."""

    threads: Annotated[tuple[Leaving, ...], about("What goes, with what goes with it.")]
    dry_run: Annotated[bool, about("Whether it was only looked at.")]
    entries: Annotated[tuple[DeletedThread, ...], about("What the ledger of the store keeps of each.")]
    rule: Annotated[Maybe, about("The rule of `prune`.")]
    kept: Annotated[
        dict[Kept, int],
        about(
            "Of threads at the top how many stay: `newest`, `young`, `waits`, `decided`, `forked`, `open`."
        ),
    ]


class DeletedDocument(Document, frozen=True):
    """`deleted`: the store's own ledger."""

    entries: Annotated[tuple[DeletedThread, ...], about("Newest first.")]
    more: Annotated[bool, about("Whether there are more than `--limit`.")]


class SizeDocument(Document, frozen=True):
    """`size`: what fills a store, the largest thread first."""

    used: Annotated[int, about("Bytes that the store takes on the disk.")]
    free: Annotated[int, about("Bytes of them that `vacuum` could give back.")]
    threads: Annotated[tuple[ThreadSize, ...], about("Threads, with what their own rows fill.")]
    more: Annotated[bool, about("Whether there are more than `--limit`.")]


class VacuumDocument(Document, frozen=True):
    """`vacuum`."""

    before: Annotated[int, about("Bytes on the disk before.")]
    after: Annotated[int, about("Bytes on the disk now.")]


class ReplayDocument(Document, frozen=True):
    """`replay`."""

    thread: Annotated[str, about("The thread.")]
    ok: Annotated[bool, about("Whether the graph goes the same way today.")]
    steps: Annotated[int, about("Steps that were gone through.")]
    records: Annotated[int, about("Updates that were reduced again.")]
    nodes: Annotated[int, about("Results that were served.")]
    changed_reducers: Annotated[tuple[str, ...], about("Channels that reduce otherwise today.")]
    mismatches: Annotated[tuple[Mismatch, ...], about("Where it differs.")]


class ArtifactRow(msgspec.Struct, frozen=True):
    """An artifact of a step."""

    step: Annotated[int, about("The step.")]
    name: Annotated[str, about("Its name.")]
    media_type: Annotated[str, about("What it is, as `text/markdown`.")]
    size: Annotated[int, about("Bytes.")]
    sha256: Annotated[str, about("Of its bytes.")]
    binary: Annotated[bool, about("Whether it is bytes in place of text.")]
    path: Annotated[Maybe, about("The branch.")]


class ArtifactsDocument(Document, frozen=True):
    """`artifacts`."""

    thread: Annotated[str, about("The thread.")]
    artifacts: Annotated[tuple[ArtifactRow, ...], about("Oldest first.")]
    body: Annotated[Maybe, about("Of one that was named: the text, or the bytes in base64.")] = ""


class ItemsDocument(Document, frozen=True):
    """`items`."""

    items: Annotated[tuple[StoredItem, ...], about("As the store orders them.")]


class TestDocument(Document, frozen=True):
    """`test`."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int | None, about("The step that was named; null for the newest.")]
    text: Annotated[str, about("The test, as a Python file.")]


class RollbackDocument(Document, frozen=True):
    """`rollback`."""

    thread: Annotated[str, about("The thread.")]
    progress: Inline[Progress]
    dry_run: Annotated[bool, about("Whether it was only looked at.")]
    entries: Annotated[tuple[RollbackEntry, ...], about("In the order they run.")]
    exit_code: Annotated[int, about("The exit code of the command.")]


class ThemesDocument(Document, frozen=True):
    """`themes`."""

    themes: Annotated[tuple[ThemeRow, ...], about("Ours and yours.")]
    directory: Annotated[str, about("Where yours go.")]


class KeysDocument(Document, frozen=True):
    """`keys`."""

    keys: Annotated[tuple[KeyRow, ...], about("Every action.")]
    problems: Annotated[tuple[str, ...], about("What is wrong in `[keys]`, with its place.")]


class ConfigDocument(Document, frozen=True):
    """`config`."""

    config: Annotated[tuple[Setting, ...], about("Every setting.")]
    file: Annotated[str, about("The configuration file.")]
    file_exists: Annotated[bool, about("Whether it is there.")]


class DoctorDocument(Document, frozen=True):
    """`doctor`."""

    doctor: Annotated[tuple[Finding, ...], about("What was looked at.")]
    ok: Annotated[bool, about("Whether nothing is wrong.")]


class ThreadsDocument(Document, frozen=True):
    """`threads`, newest first."""

    threads: Annotated[tuple[ThreadSummary, ...], about("The threads.")]
    more: Annotated[bool, about("Whether there are more than `--limit`.")]
    requests: Annotated[
        tuple[WaitingRequest, ...],
        about("All that they ask, most urgent first; with `--waiting` in the order that was asked for."),
    ]


class MineDocument(Document, frozen=True):
    """`log --mine`."""

    person: Annotated[str, about("Whose decisions.")]
    decisions: Annotated[tuple[DecisionOutcome, ...], about("Newest first.")]


class NoticeDocument(Document, frozen=True):
    """`watch`, and what a command for notices gets on its standard input."""

    notice: Inline[Notice]


class WorkersDocument(Document, frozen=True):
    """Who advances threads, and what is to be done: `workers`."""

    workers: Annotated[tuple[WorkerInfo, ...], about("The workers that were heard of.")]
    jobs: Annotated[tuple[WorkerJob, ...], about("What runs, then what is queued, in its order.")]
    orphans: Annotated[tuple[OrphanGraph, ...], about("The graphs that no worker has and threads wait for.")]
    running: Annotated[int, about("How many threads run at workers.")]
    queued: Annotated[int, about("How many wait for a worker.")]
    later: Annotated[int, about("How many wait for their time.")]
