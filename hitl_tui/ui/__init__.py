"""The screens: the only package that imports Textual.

With its app Textual imports its command palette, and with that widgets of all kinds: a tenth of what an app
imports. Our apps have a palette of their own or none, so Textual's is left out.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Final

_PALETTE: Final = "textual.command"


class _LeftOut:
    """A placeholder for each class of the palette in the module of Textual's app."""


def _named(name: str) -> type[_LeftOut]:
    if name.startswith("__"):
        raise AttributeError(name)
    return _LeftOut


def _import_app() -> None:
    """Import Textual's app without its palette, unless that already exists."""
    if _PALETTE in sys.modules:
        return
    sys.modules[_PALETTE] = stand_in = ModuleType(_PALETTE)
    vars(stand_in)["__getattr__"] = _named
    try:
        import_module("textual.app")
    finally:
        del sys.modules[_PALETTE]


_import_app()
