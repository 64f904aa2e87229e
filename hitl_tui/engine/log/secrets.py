"""Finds likely secrets: by their names, by their form, and in source code.

Specified in docs/spec/data.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

_NAMES: Final = "key|token|secret|password|passwd|credential|authorization"
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+")
_SECRET_WORDS: Final = frozenset(
    (
        "secret", "secrets", "password", "passwords", "passwd", "passphrase", "credential", "credentials",
        "authorization", "apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken",
    )
)  # fmt: skip
_PLAIN_BEFORE_KEY: Final = frozenset(
    (
        "primary", "foreign", "sort", "sorting", "partition", "cache", "dict", "group", "grouping",
        "index", "row", "column", "unique", "natural", "public", "map", "object", "hash", "join", "lookup",
        "composite", "str", "first", "last", "this", "each", "any", "other", "next", "old", "new", "in",
        "by", "memory", "input", "output", "message", "messages", "history", "text", "state", "metadata",
        "store", "item", "document", "answer", "question", "result",
    )
)  # fmt: skip
_PLAIN_AFTER_TOKEN: Final = frozenset(
    (
        "count", "counts", "limit", "limits", "usage", "type", "types", "length", "budget", "index",
        "error", "errors", "rate",
    )
)  # fmt: skip
SECRET_LOOK: Final = re.compile(
    r"""(?i:bearer)\s+[^\s"']+|\b(?:sk|pk|gsk|xai|hf|AIza)[-_][\w.*-]{6,}|\bAIza[\w-]{10,}"""
)
"""Finds a key as providers make them, and what follows "Bearer"."""


def is_secret_name(name: str) -> bool:
    """Whether a name is that of a secret; whole words count, so `max_tokens` and `monkey` are none."""
    words = [word.lower() for word in _WORDS.findall(name)]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _SECRET_WORDS or (word == "token" and after not in _PLAIN_AFTER_TOKEN):
            return True
        if word == "key" and before and before not in _PLAIN_BEFORE_KEY:
            return True
    return False


MASK: Final = "[secret]"

_LONGEST: Final = 500
"""Characters of a line that are checked; the rest of the line is left out."""
_LITERAL: Final = (
    r"""[rbfu]{0,2}(?:'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"""
    r"""|'(?:[^'\\\n]|\\.)*(?:'|$)|"(?:[^"\\\n]|\\.)*(?:"|$))"""
)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compile the patterns that mask source code, on first use: it takes as long as importing many modules.

    The first matches a name (maybe as a dict key), what separates it from its value (maybe a type), and the
    value, maybe of several literals; the second one literal; the third the opening of a literal.
    """
    flags = re.IGNORECASE | re.MULTILINE | re.DOTALL
    named = (
        rf"""(?<!\w)((\w{{0,60}}?(?:{_NAMES})\w{{0,60}})["')\]]{{0,3}}\s{{0,9}}(?::[\w\s.\[\]|]{{1,60}}=|[=!:]?=|[:,(])[\s(\\]{{0,200}})"""
        rf"""({_LITERAL}(?:[\s\\]{{0,200}}{_LITERAL})*)"""
    )
    opens = r"""[rbfu]{0,2}('''|\"{3}|'|")"""
    return re.compile(named, flags), re.compile(_LITERAL, flags), re.compile(opens, re.IGNORECASE)


def masked_source(lines: Sequence[str]) -> list[str]:
    """Return lines of source code with the values of secrets, and texts that look like secrets, masked."""
    text = "\n".join(line[:_LONGEST] for line in lines)
    named, each, _ = _patterns()
    text = named.sub(
        lambda match: match[1] + each.sub(_masked, match[3]) if is_secret_name(match[2]) else match[0], text
    )
    return SECRET_LOOK.sub(MASK, text).split("\n")


def _masked(literal: re.Match[str]) -> str:
    """Return a masked literal with the same number of lines."""
    opens = _patterns()[2].match(literal[0])
    assert opens is not None
    inside = literal[0][opens.end() :]
    content = inside.removesuffix(opens[1])
    masked = "\n".join(MASK if line.strip() else line for line in content.split("\n"))
    return opens[0] + masked + inside[len(content) :]
