"""What may be a secret: by its name, by its own look, and where it stands in source code (SPEC 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

_NAMES: Final = "key|token|secret|password|passwd|credential|authorization"
SECRET_NAME: Final = re.compile(_NAMES, re.IGNORECASE)
"""Finds a name whose value is one."""
SECRET_LOOK: Final = re.compile(
    r"""(?i:bearer)\s+[^\s"']+|\b(?:sk|pk|gsk|xai|hf|AIza)[-_][\w.*-]{6,}|\bAIza[\w-]{10,}"""
)
"""Finds a key as providers make them, and what follows "Bearer"."""
MASK: Final = "[secret]"

_LONGEST: Final = 500
"""Characters of a line that are looked at; what stands behind them is left out."""
_LITERAL: Final = (
    r"""[rbfu]{0,2}(?:'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"""
    r"""|'(?:[^'\\\n]|\\.)*(?:'|$)|"(?:[^"\\\n]|\\.)*(?:"|$))"""
)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """What source code is masked with, compiled for the first that is; it costs what a dozen modules do.

    The name, as a key of a dict perhaps, what stands between it and its value, a type perhaps, and the value,
    which may be of several literals; each literal; what opens one.
    """
    flags = re.IGNORECASE | re.MULTILINE | re.DOTALL
    named = (
        rf"""((?:{_NAMES})\w{{0,60}}["')\]]{{0,3}}\s{{0,9}}(?::[\w\s.\[\]|]{{1,60}}=|[=!:]?=|[:,(])[\s(\\]{{0,200}})"""
        rf"""({_LITERAL}(?:[\s\\]{{0,200}}{_LITERAL})*)"""
    )
    opens = r"""[rbfu]{0,2}('''|\"{3}|'|")"""
    return re.compile(named, flags), re.compile(_LITERAL, flags), re.compile(opens, re.IGNORECASE)


def masked_source(lines: Sequence[str]) -> list[str]:
    """Lines of source code without texts behind the name of a secret, and without what looks like one."""
    text = "\n".join(line[:_LONGEST] for line in lines)
    named, each, _ = _patterns()
    text = named.sub(lambda match: match[1] + each.sub(_masked, match[2]), text)
    return SECRET_LOOK.sub(MASK, text).split("\n")


def _masked(literal: re.Match[str]) -> str:
    """A literal that holds nothing any more, on as many lines."""
    opens = _patterns()[2].match(literal[0])
    assert opens is not None
    inside = literal[0][opens.end() :]
    content = inside.removesuffix(opens[1])
    masked = "\n".join(MASK if line.strip() else line for line in content.split("\n"))
    return opens[0] + masked + inside[len(content) :]
