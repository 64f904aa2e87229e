"""`export`, `import`, `verify`, `anchor`: a thread's log taken out of a store, into another, and checked."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from hitl_tui.cli.opening import build_now, signer_of
from hitl_tui.cli.options import (
    PACE,
    building_options,
    named_thread,
    reviewer_option,
    store_option,
    theme_option,
    thread_argument,
)
from hitl_tui.cli.output import emit, json_option, keep_nodes_apart, progress, say
from hitl_tui.errors import ExitCode, HitlError, LogCorrupt, ThreadBusy, UsageError
from hitl_tui.given_files import lines_of, open_given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hitl_tui.config import Settings
    from hitl_tui.engine.audit.anchor import Anchor
    from hitl_tui.engine.audit.findings import Mismatch, VerifyReport
    from hitl_tui.engine.audit.steps import Watch
    from hitl_tui.stores import Checkpointer


def _screen_size(_: click.Context, __: click.Parameter, value: str) -> tuple[int, int]:
    columns, _x, rows = value.partition("x")
    if not (
        columns.isdecimal() and rows.isdecimal() and 40 <= int(columns) <= 400 and 12 <= int(rows) <= 200
    ):
        raise click.BadParameter(f"{value!r} is not a size: 40x12 to 400x200, as in 110x30")
    return int(columns), int(rows)


_LONGEST_LINE = 1 << 30
_ANCHORS = "give what `hitl-tui anchor` wrote"


@click.command("export")
@thread_argument
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--private", is_flag=True, help="Include private values; only such a file can be imported.")
@click.option("--alone", is_flag=True, help="Without the threads of its subgraphs.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write, as an option."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["log", "html", "markdown", "svg", "asciicast"]),
    default="log",
    show_default=True,
    help="`log` can be imported; the others are for people.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="How many of the newest steps a page has.",
)
@click.option(
    "--size",
    default="110x30",
    show_default=True,
    callback=_screen_size,
    metavar="COLUMNSxROWS",
    help="Size of a picture or a recording.",
)
@click.option(
    "--pace",
    type=PACE,
    default=1.0,
    show_default=True,
    help="Pace of a recording.",
)
@theme_option
@store_option
@reviewer_option
@json_option
def export_command(
    *,
    thread: str,
    file: Path | None,
    private: bool,
    alone: bool,
    force: bool,
    output: Path | None,
    form: str,
    limit: int,
    size: tuple[int, int],
    pace: float,
    theme: str | None,
    store: str | None,
    reviewer: str | None,
    as_json: bool,
) -> None:
    """Write a thread to a file, or to stdout for a pipe.

    The file has JSON lines with all steps and decisions, also of the threads of its subgraphs. Values of
    private channels are left out, so it can't be imported, unless you give --private; then the ledger of
    the thread records who exported them. With --format html or markdown it is a page to share or to attach
    to an audit. The page has the graph, every step with its changes, who decided what, when and why, all
    hashes, and the result of `verify`. It loads and runs nothing, and never has private values. With svg
    the file is a picture of the thread's screen, with asciicast (v3) a recording of its run for `play`.

        hitl-tui export r1 r1.jsonl
        hitl-tui export r1 | ssh desk hitl-tui import -
        hitl-tui export r1 --format html -o r1.html
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.stores.transfer import export_thread

    if file is not None and output is not None:
        raise UsageError("the file is named twice", f"leave out {file}, or --output")
    file = output or file
    if form != "log" and (private or alone):
        raise UsageError("--private and --alone are for the log that `import` takes", "leave --format out")
    target = None if file is None or str(file) == "-" else file
    _check_target(target, as_json=as_json, force=force)
    settings = load_settings({"store": store, "reviewer": reviewer, "theme": theme})
    if form in ("svg", "asciicast"):
        from hitl_tui.cli.pictures import write_picture

        if target is None:
            raise UsageError("a picture goes to a file", "name one with -o FILE")
        write_picture(thread, form, target, settings, size=size, pace=pace)
        _print_export(thread, target, target.stat().st_size, as_json=as_json)
        return
    with closing(open_existing(settings)) as opened:
        name = find_thread(opened, thread)
        if form != "log":
            _write_page(opened, name, form, target, limit, as_json=as_json)
            return
        threads = [name] if alone else _with_inside(opened, name)
        if private:
            for each in threads:
                _note_export(opened, each, settings, str(target or "stdout"))
        lines = export_thread(opened, name, private=private, alone=alone)
        if target is None:
            _write_all(sys.stdout.buffer, lines)
            return
        count = _write_file(target, lines)
    if as_json:
        from hitl_tui.cli.reports import ExportDocument

        inside = tuple(threads[1:])
        emit(ExportDocument(thread=thread, file=str(target), lines=count, private=private, threads=inside))
    else:
        also = f", those of {_inside_it(threads[1:])} among them" if threads[1:] else ""
        say(f"wrote {count:,} lines to {target}{also}")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--thread", metavar="ID", callback=named_thread, help="Its new name; unchanged by default.")
@store_option
@json_option
def import_command(file: Path, thread: str | None, store: str | None, as_json: bool) -> None:
    """Import a thread that `export` wrote.

    All of it or nothing; - reads from stdin. Threads of its subgraphs are included and renamed after it, as
    in ID/NODE#1. The file does not contain the graph. If that is elsewhere here, open the thread with
    `hitl-tui run GRAPH --thread ID`.

        hitl-tui import r1.jsonl
        hitl-tui import r1.jsonl --thread r2 --store files:threads
    """
    from hitl_tui.cli.storage import open_for_writing
    from hitl_tui.config import load_settings

    opened = open_for_writing(load_settings({"store": store}))
    try:
        name = _read_thread(opened, file, thread)
        inside = _with_inside(opened, name)[1:]
    except ThreadBusy as error:
        raise UsageError(error.message, "give it another name with --thread ID") from None
    finally:
        opened.close()
    if as_json:
        from hitl_tui.cli.reports import ImportDocument

        emit(ImportDocument(thread=name, file=str(file), threads=tuple(inside)))
    else:
        also = f" with {_inside_it(inside)}" if inside else ""
        say(f"imported {name!r}{also}")


@click.command()
@thread_argument
@click.option(
    "--strict",
    is_flag=True,
    help="Also reduce every update again with the current graph, and require an answer for every gate.",
)
@click.option(
    "--anchor",
    "anchors",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE|-",
    help="Compare with lines that `anchor` printed.",
)
@click.option(
    "--since",
    type=click.IntRange(1),
    metavar="STEP",
    help="Check only from this step on; it must be the step of an anchor.",
)
@click.option(
    "--signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Check who signed which decisions, with ssh-keygen's file of allowed signers.",
)
@building_options
@store_option
@json_option
def verify(
    *,
    thread: str,
    strict: bool,
    anchors: Path | None,
    since: int | None,
    signers: Path | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Check that a thread's log agrees with itself.

    Every step has hashes of its state and of the steps before it, and every decision has one of the
    decisions before it. So a change that was made without the app is found. Nothing is changed. Exit code 1
    if something is wrong; each finding names its place. Threads of subgraphs are checked, too. A store that
    was put back to an earlier copy, or rewritten as a whole, agrees with itself. Compare it with what
    `anchor` printed, kept elsewhere. Lines about other threads are ignored. --signers lists who signed
    which decisions; an unknown or a wrong signature is a finding. --since STEP checks all decisions, that
    the step is that of the anchor, and everything after it. Earlier steps and the rest of the store are not
    checked.

        hitl-tui verify r1
        hitl-tui verify r1 --strict
        hitl-tui verify r1 --anchor anchors.jsonl
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    known = _read_anchors(anchors) if anchors else []
    with (
        closing(open_existing(load_settings({"store": store}))) as opened,
        progress("verifying", as_json=as_json) as watch,
    ):
        report = _verify(
            opened,
            find_thread(opened, thread),
            strict=strict,
            anchors=known,
            signers=signers,
            since=since or 0,
            watch=watch,
        )
    if as_json:
        import msgspec

        from hitl_tui.cli.reports import VerifyDocument

        emit(VerifyDocument(thread=thread, ok=report.ok, **msgspec.structs.asdict(report)))
    else:
        say(*_findings(report, strict=strict))
    return ExitCode.DONE if report.ok else ExitCode.FAILED


@click.command()
@thread_argument
@store_option
@json_option
def anchor(thread: str, store: str | None, as_json: bool) -> int:
    """Print a thread's newest hashes, to check the store later.

    A line of JSON for the thread and one for each thread inside it, with and without --json: the newest
    step and decision, their hashes and the time. Keep it where those who can write the store can't. `verify
    --anchor` then finds a store that was put back to an earlier copy or rewritten as a whole.

        hitl-tui anchor r1 >> anchors.jsonl
        hitl-tui anchor r1 | ssh desk 'cat >> anchors.jsonl'
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.reports import AnchorDocument
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.engine.audit.anchor import anchor as stands
    from hitl_tui.engine.nodes.children import descendants, readable_cursor

    with closing(open_existing(load_settings({"store": store}))) as opened:
        name = find_thread(opened, thread)
        inner = [child.thread_id for child in descendants(opened, readable_cursor(opened, name))]
        now = opened.now()
        standings = [stands(opened, each, now) for each in (name, *inner) if opened.info(each) is not None]
    for standing in standings:
        emit(AnchorDocument(anchor=standing))
    return ExitCode.DONE


def _write_page(
    store: Checkpointer, thread: str, form: str, target: Path | None, limit: int, *, as_json: bool
) -> None:
    """Write a readable page about a thread; of a damaged one the readable part, and the damage."""
    from hitl_tui.cli.langgraph import compared_with_checkpoints
    from hitl_tui.drivers.damaged import DamagedThread
    from hitl_tui.drivers.reading import RecordedThread
    from hitl_tui.engine.audit.verify import verify_tree
    from hitl_tui.engine.graph.drawing import RunMarks, marks_in_store
    from hitl_tui.view.report import thread_report
    from hitl_tui.view.report_html import html_report
    from hitl_tui.view.report_markdown import markdown_report

    reading: RecordedThread | DamagedThread | None = None
    marks = None
    with suppress(LogCorrupt):
        reading = RecordedThread(store, thread)
        marks = marks_in_store(store, thread)
    verified = verify_tree(store, thread)
    if verified.ok:
        verified = compared_with_checkpoints(store, thread, verified)
    if reading is None or not verified.ok:
        reading = DamagedThread(store, thread)
    report = thread_report(reading, marks or RunMarks(), verified, store.now(), limit)
    pieces = (html_report if form == "html" else markdown_report)(report)
    _deliver(thread, target, (piece.encode() for piece in pieces), as_json=as_json)


def _deliver(thread: str, target: Path | None, pieces: Iterable[bytes], *, as_json: bool) -> None:
    """Write a page or picture to its file or to stdout, and say so."""
    if target is None:
        _write_all(sys.stdout.buffer, pieces)
        return
    _print_export(thread, target, _write_file(target, pieces, count=len), as_json=as_json)


def _print_export(thread: str, target: Path, size: int, *, as_json: bool) -> None:
    """Print what was exported."""
    if as_json:
        from hitl_tui.cli.reports import PageDocument

        emit(PageDocument(thread=thread, file=str(target), bytes=size))
    else:
        say(f"wrote {size:,} bytes to {target}")


def _check_target(file: Path | None, *, as_json: bool, force: bool) -> None:
    """Refuse a place where an export can't go, or would overwrite something else; None is stdout."""
    if file is None:
        if as_json:
            raise UsageError("--json reports on an export to a file", "name a FILE")
        if sys.stdout.isatty():
            raise UsageError("an export goes to a file or a pipe, not to a terminal", "name a FILE")
    elif os.path.lexists(file) and not os.path.isfile(file):
        # A file would replace it, even if it is a pipe, a device or a link to nothing.
        raise UsageError(f"{file} exists and is not a file", "give another name")
    elif os.path.exists(file) and not force:
        raise UsageError(f"there is a file {file} already", "give another name, or --force")
    elif not os.path.isdir(file.parent):
        raise UsageError(f"there is no directory {file.parent}", "create it first, or give another place")


def _with_inside(store: Checkpointer, thread: str) -> list[str]:
    """Return a thread and those of its subgraphs, as far as the store has them."""
    from hitl_tui.engine.nodes.children import descendants

    cursor = store.cursor(thread)
    below = [child.thread_id for child in descendants(store, cursor)] if cursor else []
    return [thread, *(name for name in below if store.info(name) is not None)]


def _inside_it(threads: Sequence[str]) -> str:
    return f"{len(threads):,} thread{'s' if len(threads) > 1 else ''} inside it"


def _write_all(stream: BinaryIO, lines: Iterable[bytes], count: Callable[[bytes], int] = lambda _: 1) -> int:
    """Write the lines; return their number, or the sum of `count` over them."""
    total = 0
    for line in lines:
        stream.write(line)
        total += count(line)
    stream.flush()
    return total


def _note_export(store: Checkpointer, thread: str, settings: Settings, to: str) -> None:
    """Record who exports private values; a thread without any needs no note."""
    from hitl_tui.engine.commands import NoteExport, execute
    from hitl_tui.engine.thread.session import Session
    from hitl_tui.stores.transfer import private_names

    names = private_names(store, thread)
    if names:
        session = Session.recorded(store, thread, with_state=False, signer=signer_of(settings))
        with session.writing():
            execute(session, NoteExport(tuple(sorted(names)), settings.reviewer, to))


def _write_file(file: Path, lines: Iterable[bytes], count: Callable[[bytes], int] = lambda _: 1) -> int:
    """Write to a temporary file first, so that nobody finds a partial file; only the owner can read it."""
    new = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                total = _write_all(stream, lines, count)
            new.replace(file)
        finally:
            with suppress(OSError):
                new.unlink()
    except OSError as error:
        raise HitlError(f"{file} can't be written: {error.strerror}", "give another place") from None
    return total


def _read_thread(store: Checkpointer, file: Path, thread: str | None) -> str:
    from hitl_tui.stores.transfer import import_thread

    if str(file) == "-":
        return import_thread(store, lines_of(sys.stdin.buffer, _LONGEST_LINE), thread)
    try:
        with open_given(file) as lines:
            return import_thread(store, lines_of(lines, _LONGEST_LINE), thread)
    except OSError as error:
        raise UsageError(
            f"{file} can't be read: {error.strerror}", "give a file that `export` wrote"
        ) from None


def _read_anchors(file: Path) -> list[Anchor]:
    from hitl_tui.engine.audit.anchor import read_anchor

    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else open_given(file) as lines:
            anchors = [read_anchor(line) for line in lines_of(lines, _LONGEST_LINE) if line.strip()]
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}", _ANCHORS) from None
    if not anchors:
        raise UsageError(f"{file} holds no anchor", _ANCHORS)
    return anchors


def _verify(
    store: Checkpointer,
    thread: str,
    *,
    strict: bool,
    anchors: list[Anchor],
    signers: Path | None,
    since: int,
    watch: Watch | None,
) -> VerifyReport:
    from hitl_tui.engine.audit.verify import verify_tree as check
    from hitl_tui.signing import AllowedSigners

    allowed = AllowedSigners(signers) if signers else None
    from msgspec.structs import replace

    theirs = _compared(store, thread, watch)
    if not strict or theirs is not None:
        report = check(
            store, thread, anchors=anchors, signers=allowed, since=since, watch=watch, answers=strict
        )
        return replace(report, mismatches=(*report.mismatches, *(theirs or ())))

    keep_nodes_apart()
    info = store.info(thread)
    assert info is not None
    runner = build_now(store, info)
    report = runner.verify(thread, strict=True, anchor=anchors, signers=allowed, since=since, watch=watch)
    if report.ok:
        return report
    from hitl_tui.loading.compatibility import changes_since
    from hitl_tui.view.findings import changed_words

    changed = changed_words(changes_since(store, thread, runner.graph.info))
    return replace(report, notes=(*report.notes, *changed))


def _compared(store: Checkpointer, thread: str, watch: Watch | None) -> tuple[Mismatch, ...] | None:
    """Compare a thread of LangGraph with its checkpointer; None for threads of ours."""
    from hitl_tui.cli.langgraph import langgraph_hub

    hub = langgraph_hub(store, None, None)
    if hub is None:
        return None
    from hitl_tui.drivers.langgraph.audit import compare

    try:
        return asyncio.run(compare(hub.mirror, thread, watch or (lambda _done, _all: None)))
    finally:
        hub.mirror.app.close()


def _findings(report: VerifyReport, *, strict: bool) -> list[str]:
    from hitl_tui.view.findings import decision_line, finding_line
    from hitl_tui.view.format import count

    lines = [finding_line(mismatch) for mismatch in report.mismatches]
    also = f", those of {_inside_it(report.threads)} among them" if report.threads else ""
    checked = f"{count(report.records, 'record')} and {count(report.checkpoints, 'checkpoint')} checked{also}"
    if report.since:
        checked += f", of step {report.since} and after it; the anchor vouches for the steps before it"
    if report.unchecked:
        more = f"--strict would check {report.unchecked:,} more"
        checked += f"; {count(report.unchecked, 'state')} not compared" if strict else f"; {more}"
    verdict = count(len(lines), "finding") if lines else "ok"
    signed = [decision_line(decision) for decision in report.decisions or ()]
    if report.decisions is not None and not signed:
        signed = ["no decisions"]
    return [*signed, *report.notes, *lines, f"{verdict}: {checked}"]
