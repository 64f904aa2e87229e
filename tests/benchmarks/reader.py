"""The reader on a text of 5,900 words, in a pseudo-terminal, beside the help page.

    python -m tests.benchmarks.reader [--quick]

From the key to the paint of its first page over an open card, for the first time and for the next ones, as a
ratio to the help page; from a key to the paint of the next page.  Wanted: open in 100 ms.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.terminals import APP, Program, figures, homes

GRAPH = """
from tests.support.newsroom import LONG, newsroom

def build(checkpointer):
    return newsroom(LONG, store=checkpointer)
"""
ESCAPE = "\x1b"
PAGE_DOWN = "\x1b[6~"


def pressed(program: Program, key: str, shown: str) -> float:
    """Milliseconds from a key to the paint of a text."""
    program.quiet(0.3)
    program.press(key)
    return program.until(shown, 20) * 1e3


def measure(times: int) -> dict[str, float]:
    """The figures of one session."""
    pages: list[float] = []
    opened: list[float] = []
    turned: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "room.py").write_text(GRAPH)
        argv = [APP, "run", str(folder / "room.py"), "--store", str(folder / "runs.db")]
        with Program(argv, {**homes(folder), "PYTHONPATH": str(Path.cwd())}) as program:
            program.until("READY")
            program.quiet(1.0)
            program.press("c")
            program.until("Publish this article?")
            program.quiet(1.5)
            for _ in range(times):
                pages.append(pressed(program, "?", "Keys, words and signs"))
                program.quiet(0.3)
                program.press(ESCAPE)
                opened.append(pressed(program, "O", "page 1 of"))
                turned.append(pressed(program, PAGE_DOWN, "page 2 of"))
                program.quiet(0.3)
                program.press(ESCAPE)
    page = statistics.median(pages[1:])
    return {
        "first_ms": opened[0],
        "open_ms": statistics.median(opened[1:]),
        "page_ms": page,
        "open_beside_page": statistics.median(opened[1:]) / page,
        "first_beside_first": opened[0] / pages[0],
        "turn_ms": statistics.median(turned),
    }


def main() -> None:
    """Measure, and print the figures."""
    values = measure(4 if "--quick" in sys.argv else 12)
    print(f"opened in {values['open_ms']:.0f} ms, {values['open_beside_page']:.1f} × the help page")
    figures("reader", values)


if __name__ == "__main__":
    main()
