"""The map of the code in CONTRIBUTING.md: a line a module, taken from the modules' docstrings.

python tests/tools/code_map.py          # prints the map
python tests/tools/code_map.py --write  # puts it into CONTRIBUTING.md
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "CONTRIBUTING.md"
_REFERENCE = re.compile(r" \((SPEC|DESIGN)[^)]*\)")
BEGIN, END = "<!-- map: begin -->\n", "<!-- map: end -->"
PACKAGES = (
    "",
    "engine",
    "engine/log",
    "engine/channels",
    "engine/graphs",
    "engine/thread",
    "engine/interrupts",
    "engine/nodes",
    "engine/subgraphs",
    "engine/humans",
    "engine/running",
    "engine/undo",
    "engine/verification",
    "engine/reports",
    "stores",
    "agents",
    "workflows",
    "loading",
    "loading/graphfile",
    "drivers",
    "view",
    "plain",
    "ui",
    "ui/screens",
    "ui/widgets",
    "cli",
)


def code_map() -> str:
    """The map as Markdown."""
    parts = []
    for package in PACKAGES:
        folder = ROOT / "hitl_tui" / package
        modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        heading = f"### `hitl_tui/{package}`" if package else "### `hitl_tui`"
        lines = [f"- `{path.name}`: {_first_sentence(path)}" for path in modules]
        about = _first_sentence(folder / "__init__.py")
        parts.append("\n".join([heading, "", *([about, ""] if about else []), *lines, ""]))
    return "\n".join(parts)


def with_map(guide: str) -> str:
    """CONTRIBUTING.md with the map as it is now."""
    before, _, rest = guide.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{code_map()}\n{END}{after}"


def _first_sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = _REFERENCE.sub("", " ".join(docstring.partition("\n\n")[0].split()))
    return paragraph if paragraph.endswith(".") or not paragraph else f"{paragraph}."


def main() -> None:
    """Print the map, or write it."""
    if "--write" in sys.argv[1:]:
        GUIDE.write_text(with_map(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(code_map())


if __name__ == "__main__":
    main()
