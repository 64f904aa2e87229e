"""OpenTelemetry spans of a thread: runs, nodes, attempts, branches, model and tool calls, waits for people.

Names follow the semantic conventions for generative AI, where they have one. Spans hold names, counts, times
and decisions; never prompts, replies, arguments, results, values or error messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    BranchEnded,
    BranchStarted,
    ChildMoved,
    Event,
    LedgerWritten,
    ModelCalled,
    NodeRetrying,
    NodeStarted,
    Progress,
    RunEnded,
    RunStarted,
    StepCommitted,
    ToolCalled,
)
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.engine.thread.session import Session

_SENT_WITHIN = 3
"""Seconds to wait for a collector's response."""
_ENDS_WAIT = frozenset({"answer", "timeout", "withdrawn"})
_OVER = frozenset({"completed", "cancelled"})

_log = logging.getLogger(__name__)


class Spans:
    """Makes spans from the events of one thread; call it with each event, in order.

    All spans of one invocation of a thread belong to one trace, whichever process makes them. The thread's
    own span is made when the thread has ended; below it are its runs and the waits for people.

    Args:
        source: what runs the thread, as in `runner.invoke(..., on_event=Spans(runner))`.
        provider: the provider of tracers; by default that of the process.

    Raises:
        UsageError: the extra `telemetry` is not installed.
    """

    def __init__(self, source: GraphRunner | Session, provider: TracerProvider | None = None) -> None:
        self._graph = source.graph.name
        self._store = source.store
        self._tracer = _tracer(provider)
        self._thread_id = ""
        self._invocation = 0
        self._trace: tuple[int, int] = (0, 0)
        self._open: dict[str, Span] = {}
        """Started spans, from the outermost to the innermost: run, node, attempt, then branches."""

    def __call__(self, event: Event) -> None:
        """Handle the next event."""
        if isinstance(event, RunStarted):
            self._run_started(event)
        elif isinstance(event, LedgerWritten):
            if event.entry.kind in _ENDS_WAIT and event.entry.request_id:
                self._waited(event.entry)
        elif "run" in self._open:
            self._in_run(event)

    def _in_run(self, event: Event) -> None:
        if isinstance(event, NodeStarted):
            self._node_started(event)
        elif isinstance(event, BranchStarted):
            self._end(event.path)
            attributes = {"hitl_tui.node": event.name, "hitl_tui.attempt": event.attempt}
            self._start(event.path, f"branch {event.path}", attributes, above="attempt", at=event.at)
        elif isinstance(event, BranchEnded):
            error = event.outcome.error
            self._end(event.outcome.path, at=event.at, error=error.title if error else "")
        elif isinstance(event, ChildMoved):
            self._child_moved(event)
        elif isinstance(event, ModelCalled):
            self._model_called(event)
        elif isinstance(event, ToolCalled):
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": event.tool,
                "gen_ai.tool.type": "function",
                "gen_ai.agent.name": event.agent,
            }
            name = f"execute_tool {event.tool}"
            self._call(name, attributes, event.path, event.duration, "error" if event.error else "")
        elif isinstance(event, NodeRetrying):
            span = self._open.get(event.path) or self._open.get("attempt")
            if span:
                span.add_event("retry", {"hitl_tui.attempt": event.attempt, "hitl_tui.wait_s": event.wait})
        elif isinstance(event, StepCommitted):
            self._end("node", step=event.checkpoint.step)
        elif isinstance(event, AttemptFailed):
            self._end("node", error=event.error.title)
        elif isinstance(event, AttemptDropped):
            self._end("node", error=f"dropped: {event.why}")
        elif isinstance(event, RunEnded):
            self._run_ended(event.progress)

    def _run_started(self, event: RunStarted) -> None:
        self._end("run")
        self._thread_id = event.thread_id
        self._find_trace(event.progress.invocation)
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": self._graph,
            "gen_ai.conversation.id": self._thread_id,
            "hitl_tui.invocation": self._invocation,
            "hitl_tui.step": event.progress.head,
        }
        self._start("run", f"invoke_workflow {self._graph}", attributes)

    def _run_ended(self, progress: Progress) -> None:
        run = self._open["run"]
        run.set_attributes({"hitl_tui.status": progress.status, "hitl_tui.reason": progress.reason})
        failed = progress.error.title if progress.status == "failed" and progress.error else ""
        self._end("run", error=failed)
        if progress.status in _OVER:
            self._thread_ended(progress)

    def _node_started(self, event: NodeStarted) -> None:
        if event.attempt > 1 and "node" in self._open:
            self._end("attempt", at=event.at, error="retried")
        else:
            self._end("node", at=event.at)
            attributes = {"hitl_tui.node": event.node, "hitl_tui.step": event.step}
            self._start("node", f"node {event.node}", attributes, above="run", at=event.at)
        attributes = {"hitl_tui.node": event.node, "hitl_tui.attempt": event.attempt}
        self._start("attempt", f"attempt {event.attempt}", attributes, above="node", at=event.at)

    def _child_moved(self, event: ChildMoved) -> None:
        """Start the span of a subgraph's running node, and end that of the node before it."""
        key = f"{event.path}/"
        self._end(key)
        if event.running:
            attributes = {"hitl_tui.node": event.running, "gen_ai.conversation.id": event.thread_id}
            self._start(key, f"node {event.path}/{event.running}", attributes, above="attempt")

    def _model_called(self, event: ModelCalled) -> None:
        provider, _, _ = event.model.rpartition("/")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider or "unknown",
            "gen_ai.request.model": event.model,
            "gen_ai.agent.name": event.agent,
            "gen_ai.usage.input_tokens": event.tokens_in,
            "gen_ai.usage.output_tokens": event.tokens_out,
            **({} if event.cost is None else {"hitl_tui.cost_usd": event.cost}),
        }
        self._call(f"chat {event.model}", attributes, event.path, event.duration, client=True)

    def _waited(self, entry: LedgerEntry) -> None:
        """Make the span of a wait, from the request to the entry that ended it, by whichever process."""
        if self._store is None:
            return
        entries = [
            each for each in self._store.ledger(entry.thread_id) if each.request_id == entry.request_id
        ]
        asked = next((each for each in entries if each.kind == "request"), None)
        if asked is None:
            return
        if self._thread_id != entry.thread_id:
            self._thread_id = entry.thread_id
            cursor = self._store.cursor(entry.thread_id)
            self._find_trace(cursor.invocation if cursor else 1)
        attributes: dict[str, Any] = {
            "hitl_tui.request.id": entry.request_id,
            "hitl_tui.step": entry.step,
            "hitl_tui.decision": entry.kind,
            "gen_ai.conversation.id": entry.thread_id,
        }
        if entry.actor:
            attributes["enduser.id"] = entry.actor
        answer = entry.data.get("answer") if isinstance(entry.data, Mapping) else None
        if isinstance(answer, Mapping) and isinstance(answer.get("choice"), str):
            attributes["hitl_tui.choice"] = answer["choice"]
        span = self._tracer.start_span(
            "wait for a human", self._root(), attributes=attributes, start_time=asked.at * 1000
        )
        for vote in entries:
            if vote.kind == "vote":
                who = {"enduser.id": vote.actor} if vote.actor else {}
                span.add_event("vote", who, timestamp=vote.at * 1000)
        span.end(entry.at * 1000)

    def _thread_ended(self, progress: Progress) -> None:
        info = self._store.info(self._thread_id) if self._store else None
        if info is None:
            return
        ids = getattr(self._tracer, "id_generator", None)
        if not isinstance(ids, _Ids):
            return
        from opentelemetry.context import Context

        attributes = {"gen_ai.workflow.name": self._graph, "gen_ai.conversation.id": self._thread_id}
        with ids.fixed(self._trace):
            span = self._tracer.start_span(
                f"thread {self._graph}", Context(), attributes=attributes, start_time=info.created_at * 1000
            )
        span.set_attributes({"hitl_tui.status": progress.status, "hitl_tui.step": progress.head})
        span.end()

    def _find_trace(self, invocation: int) -> None:
        self._invocation = invocation
        info = self._store.info(self._thread_id) if self._store else None
        known = info.facts_hash if info else f"{self._thread_id} {time.time_ns()}".encode()
        digest = sha256(b"%d " % invocation + known).digest()
        self._trace = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big")

    def _root(self) -> Context:
        from opentelemetry.trace import (
            NonRecordingSpan,
            SpanContext,
            TraceFlags,
            set_span_in_context,
        )

        flags = TraceFlags(TraceFlags.SAMPLED)
        context = SpanContext(*self._trace, is_remote=True, trace_flags=flags)
        return set_span_in_context(NonRecordingSpan(context))

    def _below(self, *names: str) -> Context:
        from opentelemetry.trace import set_span_in_context

        above = next((span for name in names if (span := self._open.get(name))), None)
        return self._root() if above is None else set_span_in_context(above)

    def _start(
        self, key: str, name: str, attributes: Mapping[str, Any], *, above: str = "", at: int | None = None
    ) -> None:
        when = time.time_ns() if at is None else at * 1000
        context = self._below(above)
        self._open[key] = self._tracer.start_span(name, context, attributes=attributes, start_time=when)

    def _call(
        self,
        name: str,
        attributes: Mapping[str, Any],
        path: str,
        duration: int,
        error: str = "",
        *,
        client: bool = False,
    ) -> None:
        """Make the span of a call that took `duration` microseconds and has ended now."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        now = time.time_ns()
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        span = self._tracer.start_span(
            name, self._below(path, "attempt"), kind, attributes, start_time=now - duration * 1000
        )
        if error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(now)

    def _end(self, key: str, *, at: int | None = None, error: str = "", step: int | None = None) -> None:
        """End a span and all that began inside it."""
        if key not in self._open:
            return
        from opentelemetry.trace import Status, StatusCode

        when = time.time_ns() if at is None else at * 1000
        names = list(self._open)
        inside = names[names.index(key) :] if key in ("run", "node", "attempt") else [key]
        for name in reversed(inside):
            span = self._open.pop(name)
            if step is not None:
                span.set_attribute("hitl_tui.step", step)
            if error:
                span.set_attribute("error.type", error)
                span.set_status(Status(StatusCode.ERROR, error))
            span.end(when)


class Collector:
    """Sends spans to a collector by OTLP over HTTP, in the background.

    Args:
        url: the collector, such as http://localhost:4318. OpenTelemetry's variables, such as
            `OTEL_SERVICE_NAME` and `OTEL_EXPORTER_OTLP_HEADERS`, apply as well.

    Raises:
        UsageError: the extra `telemetry` is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
        except ImportError as error:
            raise _missing(error) from None
        collector = self

        class Exporter(OTLPSpanExporter):
            """Counts spans that can't be sent."""

            def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
                try:
                    result = super().export(spans)
                except Exception:  # older versions raise the connection's errors
                    result = SpanExportResult.FAILURE
                collector._lost += 0 if result is SpanExportResult.SUCCESS else len(spans)
                return result

        # Its warnings about the collector must not be written over the screen.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        self._lost = 0
        address = url if url.rstrip("/").endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
        resource = Resource.create({"service.name": "hitl-tui"}).merge(Resource.create())
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(Exporter(address, timeout=_SENT_WITHIN)))

    def observe(self, session: Session) -> Callable[[Event], None]:
        """Return a callback for the events of a thread; its errors are logged and never disturb the run."""
        spans = Spans(session, self.provider)

        def handle(event: Event) -> None:
            try:
                spans(event)
            except Exception:
                _log.exception("an event could not be turned into a span")

        return handle

    def close(self) -> int:
        """Send the remaining spans; return how many spans could not be sent."""
        self.provider.shutdown()
        return self._lost


class _Ids:
    """Generates ids; the thread's own span gets the ids that its runs, in any process, have as parent."""

    def __init__(self, default: IdGenerator) -> None:
        self._default = default
        self._fixed: tuple[int, int] | None = None

    @contextmanager
    def fixed(self, ids: tuple[int, int]) -> Iterator[None]:
        """Give the span that is started inside these ids of trace and span."""
        self._fixed = ids
        try:
            yield
        finally:
            self._fixed = None

    def generate_trace_id(self) -> int:
        """Return the id for a new trace."""
        return self._fixed[0] if self._fixed else self._default.generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the id for a new span."""
        return self._fixed[1] if self._fixed else self._default.generate_span_id()

    def is_trace_id_random(self) -> bool:
        """True: all ids are evenly distributed, also the hashes."""
        return True


def _tracer(provider: TracerProvider | None) -> Tracer:
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise _missing(error) from None
    tracer = trace.get_tracer("hitl_tui", tracer_provider=provider)
    if hasattr(tracer, "id_generator"):
        tracer.id_generator = _Ids(tracer.id_generator)
    return tracer


def _missing(error: ImportError) -> UsageError:
    return UsageError(f"spans can't be made: {error}", 'pip install "hitl-tui[telemetry]"')
