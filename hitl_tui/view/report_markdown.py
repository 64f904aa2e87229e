"""Writes the report about a thread as Markdown; foreign text is always code, so none of it is markup.

A fence is longer than any run of backticks in its text; so are the marks around inline code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hitl_tui.engine.graph.drawing import to_mermaid
from hitl_tui.view.report import DecisionReport, Fact, StepReport, ThreadReport
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import plain_text


def markdown_report(report: ThreadReport) -> Iterator[str]:
    """Yield the page, piece by piece."""
    yield f"# Thread {code(report.thread)}\n\n"
    yield _list(report.facts)
    head = "**The log agrees with itself**" if report.check.ok else "**The log does not agree with itself**"
    yield f"\n{head}: {report.check.words}\n\n"
    yield from (f"- {code(finding)}\n" for finding in report.check.findings)
    yield f"\n## Graph\n\n{fenced(to_mermaid(report.graph, report.marks), 'mermaid')}\n## Decisions\n\n"
    yield from map(_decision, report.decisions)
    yield "" if report.decisions else "There are none.\n\n"
    yield "## Steps\n\n"
    if report.left_out:
        yield f"Steps 0 to {report.left_out - 1:,} are left out.\n\n"
    yield from map(_step, report.steps)
    yield "## State\n\n"
    for channel, lines in report.state:
        yield f"### {code(channel)}\n\n{fenced(chr(10).join(lines))}\n"


def code(text: str) -> str:
    """Return a text as inline code that it can't end."""
    text = sanitise(text, multiline=False)
    if not text.strip():
        return "(empty)"
    marks = "`" * (_longest_run(text) + 1)
    pad = " " if "`" in (text[0], text[-1]) else ""
    return f"{marks}{pad}{text}{pad}{marks}"


def fenced(text: str, language: str = "text") -> str:
    """Return a block of code that its text can't end."""
    marks = "`" * max(3, _longest_run(text) + 1)
    return f"{marks}{language}\n{text.rstrip(chr(10))}\n{marks}\n"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _list(facts: Iterable[Fact]) -> str:
    return "".join(f"- {name}: {code(value)}\n" for name, value in facts if value)


def _decision(entry: DecisionReport) -> str:
    parts = [f"### {entry.n}. {code(entry.kind)}\n\n", _list(entry.facts), "\n"]
    if entry.note:
        parts.append(f"{fenced(entry.note)}\n")
    if entry.lines:
        parts.append(f"{fenced(chr(10).join(entry.lines))}\n")
    return "".join(parts)


def _step(step: StepReport) -> str:
    parts = [f"### {step.step} · {code(step.writer)}\n\n", _list(step.facts), "\n"]
    if step.text:
        parts.append(f"It says:\n\n{fenced(step.text)}\n")
    if step.note:
        parts.append(f"Note:\n\n{fenced(step.note)}\n")
    for change in step.changes:
        how = f" {code(change.how)}" if change.how else ""
        lines = "\n".join(map(plain_text, change.lines))
        parts.append(f"{code(change.channel)}{how}\n\n{fenced(lines)}\n")
    return "".join(parts)
