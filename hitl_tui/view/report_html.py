"""Writes the report about a thread as one HTML file: no scripts, no external resources, all text escaped.

Its content security policy forbids scripts, images, fonts and requests, so nothing could run even if a
text were not escaped. It can be printed, and follows the reader's light or dark mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from hitl_tui.view.graph_svg import graph_svg
from hitl_tui.view.report import CheckReport, DecisionReport, Fact, StepReport, ThreadReport
from hitl_tui.view.spans import Line

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE: Final = """
:root { color-scheme: light dark; --text: #24292f; --dim: #656d76; --back: #ffffff; --panel: #f6f8fa;
  --line: #d0d7de; --good: #1a7f37; --bad: #cf222e; --person: #8250df; --waits: #9a6700; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --dim: #8d96a0; --back: #0d1117; --panel: #161b22; --line: #30363d;
    --good: #3fb950; --bad: #f85149; --person: #a371f7; --waits: #d29922; } }
@media print {
  :root { --text: #000; --dim: #444; --back: #fff; --panel: #fff; --line: #999; }
  section, article { break-inside: avoid-page; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .5rem 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
article { margin: 1rem 0; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: 6px; }
article h3 { margin: .25rem 0; }
pre { margin: .25rem 0 .75rem; padding: .5rem .75rem; background: var(--panel); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; }
blockquote { margin: .5rem 0; padding-left: .75rem; border-left: 3px solid var(--person);
  white-space: pre-wrap; overflow-wrap: anywhere; }
.added, .added-word { color: var(--good); } .removed, .removed-word { color: var(--bad); }
.removed-word { text-decoration: line-through; } .added-word { text-decoration: underline; }
.dim, .quiet { color: var(--dim); } .human { color: var(--person); } .accent { color: var(--waits); }
.private { color: var(--dim); font-style: italic; }
.verdict { padding: .5rem 1rem; border: 2px solid var(--good); border-radius: 6px; }
.verdict.wrong { border-color: var(--bad); }
.graph svg { max-width: 100%; height: auto; }
""".strip()


def html_report(report: ThreadReport) -> Iterator[str]:
    """Yield the page, piece by piece."""
    name = escape(report.thread)
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>thread {name}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        f"<h1>Thread {name}</h1>\n"
    )
    yield _list(report.facts)
    yield _checked(report.check)
    yield f'<section class="graph">\n<h2>Graph</h2>\n{graph_svg(report.graph, report.marks)}</section>\n'
    yield "<section>\n<h2>Decisions</h2>\n"
    yield from map(_decision, report.decisions)
    yield "" if report.decisions else '<p class="quiet">There are none.</p>\n'
    yield "</section>\n<h2>Steps</h2>\n"
    if report.left_out:
        yield f'<p class="quiet">Steps 0 to {report.left_out - 1:,} are left out.</p>\n'
    yield from map(_step, report.steps)
    yield "<section>\n<h2>State</h2>\n"
    for channel, lines in report.state:
        yield f"<h3>{escape(channel)}</h3>\n<pre>{escape(chr(10).join(lines))}</pre>\n"
    yield "</section>\n</body>\n</html>\n"


def _list(facts: Iterable[Fact]) -> str:
    rows = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts if value)
    return f"<dl>{''.join(rows)}</dl>\n"


def _checked(check: CheckReport) -> str:
    head = "✔ The log agrees with itself" if check.ok else "✘ The log does not agree with itself"
    wrong = "" if check.ok else " wrong"
    items = "".join(f"<li>{escape(finding)}</li>" for finding in check.findings)
    findings = f"<ul>{items}</ul>" if items else ""
    return f'<p class="verdict{wrong}"><strong>{head}</strong>: {escape(check.words)}</p>{findings}\n'


def _decision(entry: DecisionReport) -> str:
    note = f"<blockquote>{escape(entry.note)}</blockquote>" if entry.note else ""
    lines = f"<pre>{escape(chr(10).join(entry.lines))}</pre>" if entry.lines else ""
    return (
        f"<article>\n<h3>{entry.n}. {escape(entry.kind)}</h3>\n{_list(entry.facts)}{note}{lines}</article>\n"
    )


def _step(step: StepReport) -> str:
    parts = [f'<article id="step-{step.step}">\n<h3>{step.step} · {escape(step.writer)}</h3>\n']
    parts.append(_list(step.facts))
    if step.text:
        parts.append(f'<p class="quiet">It says:</p><pre>{escape(step.text)}</pre>\n')
    if step.note:
        parts.append(f"<blockquote>{escape(step.note)}</blockquote>\n")
    for change in step.changes:
        lines = "\n".join(map(_line, change.lines))
        how = f'<span class="quiet">{escape(change.how)}</span>'
        parts.append(f"<p><strong>{escape(change.channel)}</strong> {how}</p><pre>{lines}</pre>\n")
    return "".join((*parts, "</article>\n"))


def _line(line: Line) -> str:
    return "".join(
        escape(span.text) if span.role == "plain" else f'<span class="{span.role}">{escape(span.text)}</span>'
        for span in line
    )
