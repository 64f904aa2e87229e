"""Flips bits of a store file, or tears it, and reads all of it; run as a process of its own, with bounds.

`python -m tests.engine_verify.flipping FILE PLACES` prints one line for each place where something else came
out than an error in words, a finding or the same output.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hitl_tui.errors import HitlError
from hitl_tui.stores import SQLiteCheckpointer
from tests.engine_verify.rich import outputs
from tests.engine_verify.test_tampered import undetected

MEMORY = 2 << 30
SECONDS = 20
"""What reading one damaged file may take."""


class TooLong(BaseException):
    """Nobody catches it on the way."""


def too_long(*_: Any) -> None:
    raise TooLong


def main(path: Path, places: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, too_long)
    whole = path.read_bytes()
    with closing(SQLiteCheckpointer(path)) as store:
        names = sorted(row.info.thread_id for row in store.threads("", 999))
        shown = outputs(store, names)
    chosen = random.Random(places)
    for number in range(places):
        at = chosen.randrange(len(whole))
        damaged = whole[:at] + bytes([whole[at] ^ (1 << chosen.randrange(8))]) + whole[at + 1 :]
        if number % 10 == 0:
            damaged = whole[:at]
        with tempfile.TemporaryDirectory() as directory:
            told = read(Path(directory) / "damaged.db", damaged, names, shown)
        if told:
            print(f"{'torn' if number % 10 == 0 else 'flipped'} at {at}: {told}")


def read(path: Path, data: bytes, names: list[str], shown: list[Any]) -> str:
    """What came of a damaged file, "" where it is as it should be."""
    path.write_bytes(data)
    signal.alarm(SECONDS)
    try:
        with closing(SQLiteCheckpointer(path)) as store:
            return "" if undetected(store, names, shown) is None else "something else is shown"
    except HitlError:
        return ""
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
