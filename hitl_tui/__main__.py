"""The program `hitl-tui`, also as `python -m hitl_tui`: so small that ctrl+c finds it whole at once."""

from __future__ import annotations

import sys
from typing import NoReturn

_INTERRUPTED = 130
"""As `cli.failures` has it, which can't be imported here yet."""


def main() -> NoReturn:
    """Run the command line; a ctrl+c while it is still being imported ends it as one does later."""
    try:
        from hitl_tui.collector import collect_seldom

        collect_seldom()
        from hitl_tui.cli.main import main as run
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    run()


if __name__ == "__main__":
    # `python -m` puts the current directory first, and what lies there would stand in for libraries.
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
