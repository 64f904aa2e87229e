"""What may be a secret: by its name, by its own look, and where it stands in source code (SPEC 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
# The name, as a key of a dict perhaps; what stands between it and its value, a type perhaps; the value, which
# may be of several literals.
_NAMED: Final = re.compile(
    rf"""((?:{_NAMES})\w{{0,60}}["')\]]{{0,3}}\s{{0,9}}(?::[\w\s.\[\]|]{{1,60}}=|[=!:]?=|[:,(])[\s(\\]{{0,200}})"""
    rf"""({_LITERAL}(?:[\s\\]{{0,200}}{_LITERAL})*)""",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_EACH: Final = re.compile(_LITERAL, re.IGNORECASE | re.MULTILINE | re.DOTALL)
_OPENS: Final = re.compile(r"""[rbfu]{0,2}('''|\"{3}|'|")""", re.IGNORECASE)


def masked_source(lines: Sequence[str]) -> list[str]:
    """Lines of source code without texts behind the name of a secret, and without what looks like one."""
    text = "\n".join(line[:_LONGEST] for line in lines)
    text = _NAMED.sub(lambda named: named[1] + _EACH.sub(_masked, named[2]), text)
    return SECRET_LOOK.sub(MASK, text).split("\n")


def _masked(literal: re.Match[str]) -> str:
    """A literal that holds nothing any more, on as many lines."""
    opens = _OPENS.match(literal[0])
    assert opens is not None
    inside = literal[0][opens.end() :]
    content = inside.removesuffix(opens[1])
    masked = "\n".join(MASK if line.strip() else line for line in content.split("\n"))
    return opens[0] + masked + inside[len(content) :]
