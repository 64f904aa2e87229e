"""Print the licences of everything that the wheel and its extras install, and fail on GPL and AGPL.

LGPL is allowed only where an extra brings it, never in what every user installs. Run it in an environment
that has hitl-tui and all its extras: `python .ci/licences.py`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import NamedTuple

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

WHEEL = "hitl-tui"
PERMISSIVE, LESSER, COPYLEFT, UNKNOWN = range(4)
"""What a licence asks of a program that uses the package: nothing much, LGPL, GPL or AGPL, not stated."""


class Dependency(NamedTuple):
    """A package that the wheel installs; `extra` is empty where every installation has it."""

    name: str
    version: str
    licence: str
    kind: int
    extra: str

    @property
    def problem(self) -> str:
        """Why the wheel must not depend on it, or empty."""
        by = f"by the extra {self.extra!r}" if self.extra else "always"
        package = f"{self.name} {self.version}, installed {by}"
        if self.kind == COPYLEFT:
            return f"{package}: {self.licence} is not allowed"
        if self.kind == LESSER and not self.extra:
            return f"{package}: {self.licence} is allowed only by an extra"
        if self.kind == UNKNOWN:
            return f"{package}: its metadata states no licence"
        return ""


def kind_of_name(name: str) -> int:
    """Return the kind of one licence, given its SPDX identifier, classifier or plain name."""
    rest, lesser = re.subn(r"LGPL|(lesser|library) general public", "", name, flags=re.IGNORECASE)
    if re.search(r"GPL|general public|affero", rest, re.IGNORECASE):
        return COPYLEFT
    if lesser:
        return LESSER
    return PERMISSIVE


def kind_of_expression(expression: str) -> int:
    """Return the kind of a valid SPDX expression: of `OR` we choose the freer side, `AND` means both.

    With a kind in place of each licence it is an expression of Python, whose `and` binds closer, too.
    """

    def as_python(word: re.Match[str]) -> str:
        text = word[0]
        return text.lower() if text in ("AND", "OR") else str(kind_of_name(text))

    def kind_of(node: ast.expr) -> int:
        if isinstance(node, ast.BoolOp):
            choose = max if isinstance(node.op, ast.And) else min
            return choose(map(kind_of, node.values))
        return int(ast.literal_eval(node))

    without_exceptions = re.sub(r"\s+WITH\s+[^\s()]+", "", expression)
    return kind_of(ast.parse(re.sub(r"[^\s()]+", as_python, without_exceptions), mode="eval").body)


def licence_of(package: Distribution) -> tuple[str, int]:
    """Return the licence that a package states, and its kind. Several classifiers all count."""
    metadata = package.metadata
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier") or ()
        if text.startswith("License :: ") and text != "License :: OSI Approved"
    ]
    text = (metadata.get("License-Expression") or metadata.get("License") or "").strip()
    try:
        expression = str(canonicalize_license_expression(text))
        return expression, kind_of_expression(expression)
    except InvalidLicenseExpression:
        pass
    if classifiers:
        return ", ".join(classifiers), max(map(kind_of_name, classifiers))
    if text and text.upper() != "UNKNOWN":
        return text.splitlines()[0], kind_of_name(text)
    return "not stated", UNKNOWN


def packages_of(name: str, extras: frozenset[str]) -> Iterator[Distribution]:
    """Each package that `name` with these extras installs here, without itself.

    Raises `PackageNotFoundError` for one that is not installed, since its licence cannot be read.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    names = {canonicalize_name(name)}
    queue = [(name, extras)]
    while queue:
        parent, wanted = queue.pop()
        if (canonicalize_name(parent), wanted) in seen:
            continue
        seen.add((canonicalize_name(parent), wanted))
        package = distribution(parent)
        if canonicalize_name(parent) not in names:
            names.add(canonicalize_name(parent))
            yield package
        for text in package.requires or ():
            required = Requirement(text)
            marker = required.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                queue.append((required.name, frozenset(required.extras)))


def dependencies(name: str) -> list[Dependency]:
    """Every package that `name` installs, each named once: first what it always installs, then by extra."""
    listed: dict[str, Dependency] = {}
    for extra in ("", *sorted(distribution(name).metadata.get_all("Provides-Extra") or ())):
        found = sorted(packages_of(name, frozenset({extra} - {""})), key=lambda one: one.name.lower())
        for package in found:
            licence, kind = licence_of(package)
            listed.setdefault(
                canonicalize_name(package.name),
                Dependency(package.name, package.version, licence, kind, extra),
            )
    return list(listed.values())


def main() -> int:
    """Print the list, then what is not allowed; return the exit code."""
    try:
        listed = dependencies(WHEEL)
    except PackageNotFoundError as error:
        print(
            f"{error.name} is not installed, so its licence cannot be read; install all extras",
            file=sys.stderr,
        )
        return 2
    for one in listed:
        print(f"{one.name:40} {one.version:14} {one.extra or '-':10} {one.licence}")
    problems = [one.problem for one in listed if one.problem]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
