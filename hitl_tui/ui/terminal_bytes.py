"""What a terminal sends need not be UTF-8: old mouse reports, pastes, a terminal set to another encoding."""

from __future__ import annotations

import codecs
import sys
from functools import partial
from typing import Any


def take_any_bytes() -> None:
    """Read bytes that make no sense as "�"; Textual's driver would end the app over them."""
    if sys.platform == "win32":
        return
    from textual.drivers import linux_driver

    def tolerant(encoding: str) -> Any:
        return partial(codecs.getincrementaldecoder(encoding), errors="replace")

    vars(linux_driver)["getincrementaldecoder"] = tolerant
