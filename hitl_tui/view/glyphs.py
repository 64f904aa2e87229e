"""The few glyphs of the screens, each with a twin for terminals that show ASCII only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of glyphs; each is one cell wide."""

    input: str = "○"
    node: str = "●"
    head: str = "◉"
    edit: str = "✎"
    done: str = "✔"
    waiting: str = "‖"
    failed: str = "✗"
    cancelled: str = "⊘"
    running: str = "▶"
    pending: str = "·"
    ellipsis: str = "…"
    arrow: str = "→"
    dot: str = "·"
    earlier: str = "‹"
    later: str = "›"
    across: str = "─"
    down: str = "│"
    tee: str = "├"
    corner: str = "╰"
    grew: str = "+"
    changed: str = "≠"
    same: str = "="
    tainted: str = "◆"
    breakpoint: str = "■"
    condition: str = "□"


UNICODE = Glyphs()
ASCII = Glyphs(
    input="o",
    node="*",
    head="@",
    edit="e",
    done="v",
    waiting="|",
    failed="x",
    cancelled="/",
    running=">",
    pending=".",
    ellipsis="~",
    arrow=">",
    dot="-",
    earlier="<",
    later=">",
    across="-",
    down="|",
    tee="|",
    corner="`",
    grew="+",
    changed="#",
    same="=",
    tainted="!",
    breakpoint="B",
    condition="?",
)
