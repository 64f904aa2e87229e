"""Write the table of graphs in docs/langgraph.md: `python -m tests.tools.graph_table`.

Each is run by LangGraph's own `ainvoke`, and here step by step, at once and headless; its last states are
compared without random ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.drivers.langgraph.final_states import WAYS, by_langgraph, by_us
from tests.drivers.langgraph.graphs_of_the_world import CASES, Case

PAGE: Final = Path(__file__).parents[2] / "docs" / "langgraph.md"
BEGIN, END = "<!-- written by tests.tools.graph_table -->\n", "<!-- end of the table -->\n"
_PACKAGES: Final = ("langgraph", "langgraph-checkpoint", "langchain-core")


async def results(case: Case) -> list[str]:
    """What each way of running a case comes to, in the order of `WAYS`."""
    theirs = await by_langgraph(case)
    with contextlib.redirect_stdout(io.StringIO()):
        ours = [await by_us(case, way) for way in WAYS]
    return ["same" if end == theirs else "**differs**" for end in ours]


async def table() -> str:
    """The table, with the versions that it was made with."""
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    lines = [f"Made with Python {platform.python_version()}, {versions}.", ""]
    lines += ["| graph | made of | step by step | at once | `--headless` |", "|---|---|---|---|---|"]
    for name, case in CASES.items():
        lines.append(f"| {name} | {case.shape} | {' | '.join(await results(case))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Put the table in its place on the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{asyncio.run(table())}\n{END}{after}")


if __name__ == "__main__":
    main()
