"""What a person can do to a thread: each verb is one file, in the package of its heading in `--help`.

The name of a file is the name of its verb, and its docstring is the help of the subcommand. To list verbs,
none of them is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hitl_tui.verbs.conversation import Verb

_HEADINGS: Final = ("running", "deciding", "checking", "keeping")
_EXAMPLE: Final = "    hitl-tui "


class VerbEntry(NamedTuple):
    """A verb by its name, as the command line and plain text mode write it.

    Args:
        heading: of its section in `--help`.
        help: its module's docstring.
    """

    name: str
    module: str
    heading: str
    help: str

    @property
    def summary(self) -> str:
        """Its line in a list of verbs."""
        return self.help.partition("\n")[0]

    @property
    def examples(self) -> list[str]:
        """The command lines in its help."""
        return split_help(self.help)[1]

    def load(self) -> Verb:
        """Import it."""
        verb: Verb = import_module(self.module).VERB
        return verb


def split_help(text: str) -> tuple[str, list[str]]:
    """Split the help of a command into its text and its examples: lines that are indented by four blanks."""
    lines = text.split("\n")
    examples = [line.strip() for line in lines if line.startswith(_EXAMPLE)]
    return "\n".join(line for line in lines if not line.startswith(_EXAMPLE)).strip(), examples


@cache
def verbs() -> dict[str, VerbEntry]:
    """Return all verbs by name, in the order of `--help`."""
    return {entry.name: entry for package in _HEADINGS for entry in _entries(package)}


def _entries(package: str) -> Iterator[VerbEntry]:
    directory = str(Path(__file__).parent / package)
    heading = _docstring("__init__", directory)
    for module in iter_modules([directory]):
        name = f"{__name__}.{package}.{module.name}"
        yield VerbEntry(module.name.replace("_", "-"), name, heading, _docstring(module.name, directory))


def _docstring(module: str, directory: str) -> str:
    """Return a module's docstring without running it."""
    spec = PathFinder.find_spec(module, [directory])
    assert spec is not None
    assert isinstance(spec.loader, SourceFileLoader)
    code = spec.loader.get_code(module)
    first = code.co_consts[0] if code is not None else None
    return first.strip() if isinstance(first, str) else ""
