"""Checks that the guides, the messages and the docstrings are in plain English.

python -m tests.tools.plain_words    # prints each finding with the term to use instead; exit code 1 for any

`BANNED` says what each place must not say, and `EXCEPTIONS` what is not checked, with the reason.
docs/glossary.md has the terms.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.tools.ui_strings import ui_texts

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hitl_tui"
LONGEST: Final = 30
"""Words of a sentence in a guide or a message."""

GUIDES: Final = "guides"
MESSAGES: Final = "messages"
NAMES: Final = "names"
TEST_NAMES: Final = "names of tests"
DOCSTRINGS: Final = "docstrings"

BANNED: Final[Mapping[str, Mapping[str, str]]] = {
    GUIDES: {
        r"go(es|ing)? on|went on|gone on": "continue, happen",
        r"stands?|stood": "is, is kept, is still valid",
        r"behind": "after",
        r"ways? on|way back": "route, destinations",
        r"reach(es|ing)? outside": "has side effects",
        r"g(ive|ives|iving|iven|ave) up": "stop, cancel",
        r"all that waits": "everything waiting for a decision",
        r"mend(s|ed|ing)?": "fix",
        r"in lines": "in plain text mode",
        r"whoever|whatever is at": "anyone who",
        r"taken? back": "undo",
        r"being told|are told": "notifications, are reported",
        r"puts? down": "suspend, record",
        r"c(a|o)mes? of|bec(a|o)mes? of": "result",
        r"parting": "first difference",
        r"a show|the show|shows of": "presentation",
    },
    MESSAGES: {
        r"go(es|ing)? on|went on|gone on": "continue, happen",
        r"stands|stood": "is",
        r"behind": "after",
        r"no way|ways? on": "no path, route",
        r"reach(es|ing)? outside": "has side effects",
        r"g(ive|ives|iving|iven|ave) up": "stop, cancel",
        r"what waits(?! for you)": "request",
        r"mend(s|ed|ing)?": "fix",
        r"whoever": "the person who",
        r"words of yours": "a comment",
        r"nobody's now": "no longer claimed",
    },
    NAMES: {
        r"tells?|tell_\w+|telling\w*|told\w*|untold|worded|heard|farewells?": "print, report, received",
        r"wear|heed|ways|led_on|told_to_end": "apply, take_keys, paths, advanced, on_stop_signal",
    },
    TEST_NAMES: {
        r"told|heard|tells": "reported, printed, emitted, received; events, output, error",
        r"begun": "started",
        r"stood": "is, is shown",
        r"mend(s|ed|ing)?": "fix",
        r"anew": "again",
        r"whoever": "the process or person who",
        r"g(o|oes|one) on": "continue",
    },
    DOCSTRINGS: {
        r"to whom what": "say who does what",
        r"go(es|ing)? on|went on|gone on": "continue",
        r"None where": "None if",
        r"whoever|of whom": "the person who",
        r"g(ive|ives|iving|iven|ave) up": "stop, cancel",
        r"what there is": "name the things",
        r"stands(?! for)|stood": "is, is kept, is still valid",
        r"told(?! apart)|untold|heard|worded": "report, print, received",
    },
}
"""For each place, as a regular expression for whole words, what it must not say, and what to say instead."""

EXCEPTIONS: Final[Mapping[str, str]] = {
    "docs/spec/verify.md: long sentence": "specifies bytes; shorter sentences would repeat the same subject",
    "hitl_tui/view/graph_svg.py: long sentence": "styles of a picture, not a sentence",
    "hitl_tui/view/report_html.py: long sentence": "styles of a page, not a sentence",
    "hitl_tui/cli/reports.py: says nothing": "the first line of a document is the command that prints it",
}
"""Paths, or paths with a finding, that are not checked, and why."""


class Finding(NamedTuple):
    """Something that is not plain English."""

    place: str
    what: str
    text: str
    instead: str = ""

    @property
    def is_excepted(self) -> bool:
        """Whether an exception covers it."""
        said = f"{self.place.partition(':')[0]}: {self.what}"
        return any(said.startswith(exception) for exception in EXCEPTIONS)


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and list items of a page, without code, tables, headings and pictures."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)", text):
        if block.strip() and not block.lstrip().startswith(("|", "#", "![", "!]")):
            yield re.sub(r"^\s*(?:[-*]|\d+\.) ", "", " ".join(block.split()))


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return re.split(r"(?<=[.!?])[\"”*)]*\s+", paragraph)


def words_in(place: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield what a text says that its place must not say, and what to say instead."""
    for pattern, instead in BANNED[place].items():
        if match := re.search(rf"\b(?:{pattern})\b", text):
            yield match[0], instead


def guide_findings() -> Iterator[Finding]:
    """Findings in README, CHANGELOG, CONTRIBUTING and docs/."""
    for page in [*sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        place = page.relative_to(ROOT).as_posix()
        for paragraph in paragraphs(page.read_text(encoding="utf-8")):
            yield from _of_length(place, paragraph)
            for sentence in sentences(paragraph):
                for said, instead in words_in(GUIDES, sentence):
                    yield Finding(place, said, sentence, instead)


def code_findings() -> Iterator[Finding]:
    """Findings in messages, names and docstrings of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for text in ui_texts(path):
            for said, instead in words_in(MESSAGES, text.text):
                yield Finding(f"{place}:{text.line}", said, text.text, instead)
            yield from _of_length(f"{place}:{text.line}", text.text)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _of_docstring(place, node)
            for name in names_given(node):
                yield from _of_name(f"{place}:{getattr(node, 'lineno', 1)}", name)


def _of_length(place: str, paragraph: str) -> Iterator[Finding]:
    for sentence in sentences(paragraph):
        if (length := len(sentence.split())) > LONGEST:
            yield Finding(place, "long sentence", sentence, f"{length} words; split it")


def names_given(node: ast.AST) -> list[str]:
    """Return the names that a node of the code defines."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case (
            ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store())
        ):
            return [name]
    return []


def test_findings() -> Iterator[Finding]:
    """Findings in names of tests and of what they use: functions, parameters, variables."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            else:
                continue
            for said, instead in words_in(TEST_NAMES, name.replace("_", " ")):
                yield Finding(f"{place}:{node.lineno}", said, name, instead)


def _of_name(place: str, name: str) -> Iterator[Finding]:
    for pattern, instead in BANNED[NAMES].items():
        if re.fullmatch(pattern, name.strip("_")):
            yield Finding(place, name, "name in the code", instead)


def _of_docstring(
    place: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Finding]:
    docstring = ast.get_docstring(node)
    if not docstring:
        return
    first = docstring.partition("\n")[0]
    for said, instead in words_in(DOCSTRINGS, docstring):
        yield Finding(place, said, first, instead)
    if not isinstance(node, ast.Module) and says_nothing(node.name, first):
        yield Finding(
            f"{place}:{node.lineno}", "says nothing", f"{node.name}: {first}", "what it returns or does"
        )


SMALL_WORDS: Final = frozenset(
    re.findall(r"\w+", "a an the one of for to in on at it its this that is are be by with and or as return")
)


def says_nothing(name: str, first: str) -> bool:
    """Whether the first line of a docstring only repeats the name of what it describes."""
    known = {_stem(word.lower()) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    said = {_stem(word.lower()) for word in re.findall(r"[A-Za-z]+", first)} - {_stem(w) for w in SMALL_WORDS}
    return said <= known


def _stem(word: str) -> str:
    return re.sub(r"(ing|ed|es|s|e)$", "", word)


def main() -> int:
    """Print the findings."""
    every = (*guide_findings(), *code_findings(), *test_findings())
    findings = [finding for finding in every if not finding.is_excepted]
    for finding in findings:
        instead = f" (instead: {finding.instead})" if finding.instead else ""
        print(f"{finding.place}: {finding.what}{instead}: {finding.text}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
