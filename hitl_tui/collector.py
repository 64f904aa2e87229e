"""Python's collector of cyclic garbage, which is in the way while a program starts.

Nearly all that imports bring comes to stay, and with Python's thresholds the collector walks over it two
hundred times before a first frame is painted.
"""

from __future__ import annotations

import gc
from typing import Final

_USUAL: Final = gc.get_threshold()
_STARTING: Final = 200_000
"""New objects between two collections: few programs that end soon have so many."""


def collect_seldom() -> None:
    """From here on the program starts."""
    gc.set_threshold(_STARTING)


def collect_as_usual() -> None:
    """It has started: what is there by now is never looked at again, the rest as Python does."""
    gc.freeze()
    gc.set_threshold(*_USUAL)


def collect_no_more() -> None:
    """It ends: the system takes back what is there, which Python would walk over several times."""
    gc.freeze()
