"""`artifacts`: results of nodes besides their updates, listed, read and saved."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.opening import find_thread
from hitl_tui.cli.options import complete_thread
from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode, HitlError, LogCorrupt, UnknownThread, UsageError

if TYPE_CHECKING:
    from hitl_tui.cli.reports import ArtifactRow
    from hitl_tui.engine.log.outcomes import KeptArtifact


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("name", required=False)
@click.option("--save", metavar="PATH", type=click.Path(path_type=Path), help="Write it to a file or folder.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@on_log()
def artifacts(
    opened: OpenStored, *, place: str, name: str | None, save: Path | None, force: bool
) -> ExitCode:
    """List the artifacts of a thread, read one or save it.

    Of one step with @STEP, else of all steps. NAME prints the newest text of that name. --save writes text
    or bytes to a file that only you can read and that is never executable.

        hitl-tui artifacts r1
        hitl-tui artifacts r1@3 report.md --save .
    """
    from hitl_tui.cli.inputs import split_place
    from hitl_tui.cli.reports import ArtifactsDocument

    thread, step = split_place(opened.store, place)
    thread = find_thread(opened.store, thread)
    kept = _kept(opened, thread, step)
    if name is None:
        if save is not None:
            raise UsageError("--save saves one artifact", "name it: artifacts THREAD NAME --save PATH")
        rows = tuple(_row(number, artifact) for number, artifact in kept)
        if opened.as_json:
            emit(ArtifactsDocument(thread=thread, artifacts=rows))
        else:
            say(*(_lines(rows) or ["no artifacts"]))
        return ExitCode.DONE
    known = [(number, artifact) for number, artifact in kept if artifact.name == name]
    if not known:
        names = ", ".join(dict.fromkeys(artifact.name for _, artifact in kept)) or "none"
        raise UsageError(f"{place} has no artifact {name!r}", f"artifacts: {names}")
    number, artifact = known[-1]
    if save is not None:
        saved = _save(artifact, save, force=force)
        say(f"{artifact.name} of step {number} saved as {saved}", err=True)
    elif opened.as_json:
        row = _row(number, artifact)
        emit(ArtifactsDocument(thread=thread, artifacts=(row,), body=artifact.body))
    elif artifact.binary:
        raise UsageError(f"{name!r} is bytes ({artifact.media_type})", "save it: --save PATH")
    else:
        say(artifact.body.removesuffix("\n"))
    return ExitCode.DONE


def _lines(rows: tuple[ArtifactRow, ...]) -> list[str]:
    return table((f"@{row.step}", row.name, row.media_type, f"{row.size:,} bytes", row.path) for row in rows)


def _kept(opened: OpenStored, thread: str, step: int | None) -> list[tuple[int, KeptArtifact]]:
    """Return the artifacts with their steps, oldest first."""
    store = opened.store
    if step is not None:
        point = store.checkpoint(thread, step)
        if point is None:
            raise UnknownThread(f"thread {thread!r} has no step {step}", "see `hitl-tui log`")
        return [(step, artifact) for artifact in point.artifacts]
    kept: list[tuple[int, KeptArtifact]] = []
    before: int | None = None
    while points := store.checkpoints(thread, before, 256):
        kept += [(point.step, artifact) for point in points for artifact in reversed(point.artifacts)]
        before = points[-1].step
    return kept[::-1]


def _row(step: int, artifact: KeptArtifact) -> ArtifactRow:
    from hashlib import sha256

    from hitl_tui.cli.reports import ArtifactRow

    content = _content(artifact)
    return ArtifactRow(
        step=step,
        name=artifact.name,
        media_type=artifact.media_type,
        size=len(content),
        sha256=sha256(content).hexdigest(),
        binary=artifact.binary,
        path=artifact.path,
    )


def _content(artifact: KeptArtifact) -> bytes:
    try:
        return artifact.content
    except ValueError:
        raise LogCorrupt(
            f"the artifact {artifact.name!r} was changed after it was stored",
            "see what else with `hitl-tui verify`",
        ) from None


def _save(artifact: KeptArtifact, path: Path, *, force: bool) -> Path:
    """Write an artifact to a file, or into a folder under its name; return the file."""
    if os.path.isdir(path):
        # Names are checked when nodes give them, but a store may have been changed from outside.
        if artifact.name in ("", ".", "..") or any(sign in artifact.name for sign in "/\\\0"):
            raise UsageError(f"{artifact.name!r} is not a file name", "give the whole path: --save PATH")
        path /= artifact.name
    content = _content(artifact)
    if os.path.lexists(path) and not force:
        asks = sys.stdin.isatty() and sys.stderr.isatty()
        if not asks or not click.confirm(f"{path} already exists. Replace it?", err=True):
            raise UsageError(f"{path} already exists", "--force replaces it")
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise HitlError(f"{path} can't be written: {error.strerror}", "give another place") from None
    return path
