"""Presentation scripts in TOML: their format, a strict reader, and their JSON Schema.

References to the graph (nodes, channels, expressions) are checked once the graph is built: see `view.stage`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hitl_tui.errors import UsageError
from hitl_tui.loading.graphfile.decode import Problems, decode
from hitl_tui.loading.graphfile.shape import Table, Text
from hitl_tui.loading.graphs import scripts_folder
from hitl_tui.loading.toml import read_toml
from hitl_tui.suggest import did_you_mean

SCHEMA_FILE: Final = Path(__file__).resolve().parent / "stage-file.schema.json"

Pane: TypeAlias = Literal["graph", "channels", "value", "lens", "stream", "timeline"]
Moment: TypeAlias = Literal["start", "question", "end"]
Pace: TypeAlias = Annotated[float, Meta(ge=0.25, le=8, description="1 is the models' own pace.")]
Visit: TypeAlias = Annotated[int, Meta(ge=1, description="Only the so many-th time; any by default.")]
Notes: TypeAlias = Annotated[str, Meta(description="For the speaker alone, on the terminal with --notes.")]


class ScriptInvalid(UsageError):
    """An invalid presentation script; the message lists every problem."""

    title = "The script can't be used"


class ShowTable(Table, frozen=True):
    """The presentation as a whole."""

    graph: Annotated[
        Text, Meta(description="As for `run`: a file beside this one, module:attribute, or a sample.")
    ]
    title: Annotated[str, Meta(description="Shown at the top of the screen.")] = ""
    model: Annotated[str, Meta(description="A model in place of the graph's own.")] = ""
    cassette: Annotated[str, Meta(description="Answer model calls from this file, beside this one.")] = ""
    theme: Annotated[str, Meta(description="The colours.", examples=["presenter"])] = ""
    thread: Annotated[str, Meta(description="The name of the presentation's threads, before a number.")] = (
        "show"
    )
    pace: Pace = 1.0
    notes: Notes = ""


class StopTable(Table, frozen=True):
    """A planned stop: where it is, and what is shown and said there."""

    after: Annotated[str, Meta(description="After a step of this node.")] = ""
    before: Annotated[str, Meta(description="Before this node runs.")] = ""
    at: Annotated[
        Moment | None, Meta(description="At the start, at a request to a person, or at the end.")
    ] = None
    when: Annotated[
        str, Meta(description="An expression over channels that is true there.", examples=["revision_n > 1"])
    ] = ""
    visit: Visit | None = None
    title: Annotated[str, Meta(description="The caption's bold line.")] = ""
    text: Annotated[str, Meta(description="The caption's other lines.")] = ""
    notes: Notes = ""
    spotlight: Annotated[Pane | None, Meta(description="The pane that is shown large, alone.")] = None
    channel: Annotated[str, Meta(description="The channel to select.")] = ""
    view: Annotated[
        Literal["text", "diff", "json", "blame"] | None, Meta(description="How its value is shown.")
    ] = None
    answer: Annotated[str, Meta(description="The answer to suggest to the presenter, who still decides.")] = (
        ""
    )
    words: Annotated[str, Meta(description="The text to suggest with that answer.")] = ""
    pace: Pace | None = None


class CaptionTable(Table, frozen=True):
    """What is said while a node runs."""

    node: Text
    title: Text
    text: str = ""
    visit: Visit | None = None
    spotlight: Annotated[Pane | None, Meta(description="The pane that is shown large meanwhile.")] = None


class StageFile(Table, frozen=True):
    """A presentation script of hitl-tui."""

    show: ShowTable
    inputs: Annotated[dict[str, Any], Meta(description="The first input, by channel.")] = msgspec.field(
        default_factory=dict
    )
    stops: Annotated[list[StopTable], Meta(description="The stops, in order.")] = msgspec.field(
        default_factory=list
    )
    captions: list[CaptionTable] = msgspec.field(default_factory=list)


class Script(msgspec.Struct, frozen=True):
    """A presentation script as read from its file.

    Args:
        path: its file.
        problems: collects problems found later, each with its line.
    """

    path: Path
    file: StageFile
    problems: Problems

    @property
    def title(self) -> str:
        """The title of the presentation."""
        return self.file.show.title or self.path.stem


def find_script(name: str) -> Path:
    """Return the file of a script: the named file, or the bundled script of that name.

    Raises:
        UsageError: there is neither.
    """
    path = Path(name)
    if os.path.isfile(path):
        return path
    known = {script.stem: script for script in scripts_folder().glob("*.toml")}
    if name in known:
        return known[name]
    raise UsageError(
        f"there is no script {name!r}",
        did_you_mean(name, known) or "docs/presenting.md says how to write one",
    )


def read_script(path: Path) -> Script:
    """Read the script of a presentation from its file.

    Raises:
        UsageError: it can't be read, or is no TOML.
        ScriptInvalid: lists everything that is wrong, each with file, line and key.
    """
    toml = read_toml(path)
    problems = Problems(toml, ScriptInvalid)
    file = decode(toml.values, StageFile, problems)
    for number, stop in enumerate(file.stops if file else ()):
        places = [name for name in ("after", "before", "at") if getattr(stop, name)]
        where = ("stops", number)
        if len(places) > 1:
            problems.add((*where, places[1]), f"a stop is either {places[0]!r} or {places[1]!r}", "keep one")
        elif not places and not stop.when:
            problems.add(where, "it says not where it is", "add after, before, at or when")
        if stop.visit is not None and not (stop.after or stop.before):
            problems.add((*where, "visit"), "it counts runs of a node", "name that by after or before")
        if stop.words and not stop.answer:
            problems.add((*where, "words"), "they go with an answer", "add answer")
    if file is not None and file.show.cassette and not os.path.isfile(path.parent / file.show.cassette):
        missing = f"there is no file {file.show.cassette!r} beside the script"
        problems.add(("show", "cassette"), missing, "`hitl-tui run GRAPH --record FILE` makes one")
    problems.check()
    assert file is not None
    return Script(path, file, problems)


def stage_schema_text() -> str:
    """Return the published JSON Schema of scripts, for editors."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hitl-tui script for the stage",
        **msgspec.json.schema(StageFile),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
