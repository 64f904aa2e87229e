"""What the locale says about the characters that the terminal shows."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Final

_C: Final = frozenset({"C", "POSIX"})


def shown_encoding(environ: Mapping[str, str]) -> str:
    """What the locale says the terminal shows: "utf-8", "ascii" or another codec's name."""
    everywhere, characters, language = (environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    if not everywhere and language in _C and characters == "C.UTF-8":
        # Python itself writes this LC_CTYPE over a plain C locale.
        return "ascii"
    locale = everywhere or characters or language
    if locale in _C:
        return "ascii"
    name = locale.partition("@")[0].partition(".")[2]
    try:
        return codecs.lookup(name).name if name else "utf-8"
    except LookupError:
        return "utf-8"
