"""Flips bits of a store or tears its files, and reads all of it each time; a process of its own, with bounds.

`python -m tests.engine.audit.flipping STORE flip|tear FIRST STOP STEP` damages a copy once for each number,
prints the number when it has read it, and a line before that tells what came out where that was neither an
error in words nor a finding nor the same output.  A damage that takes too long ends the process.
"""

from __future__ import annotations

import random
import resource
import shutil
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

from tests.engine.audit.rich import Stored

MEMORY = 2 << 30
"""Bytes that the process may take."""

SECONDS = 5
"""Seconds of CPU that reading one damaged store may take."""


def files(store: Path) -> list[Path]:
    """The files of a store that hold something."""
    found = sorted(store.rglob("*")) if store.is_dir() else [store]
    return [path for path in found if path.is_file() and path.stat().st_size]


def spans(store: Path) -> dict[Path, range]:
    """The numbers of the bytes of each file of a store."""
    paths = files(store)
    sizes = [path.stat().st_size for path in paths]
    return {
        path: range(end - size, end) for path, size, end in zip(paths, sizes, accumulate(sizes), strict=True)
    }


def main(store: Path, deed: str, numbers: range) -> None:
    original = Stored.at(store)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        (shutil.copytree if store.is_dir() else shutil.copy)(store, copy)
        parts = spans(copy)
        end = max(part.stop for part in parts.values())
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number in numbers:
            bound()
            if deed == "hang":
                while True:
                    pass
            chosen = random.Random(number)
            byte = number if deed == "tear" else chosen.randrange(end)
            path = next(path for path, part in parts.items() if byte in part)
            whole, at = path.read_bytes(), byte - parts[path].start
            flipped = bytes([whole[at] ^ (1 << chosen.randrange(8))])
            write(path, whole[:at] if deed == "tear" else whole[:at] + flipped + whole[at + 1 :])
            finding = read(original, copy, path)
            write(path, whole)
            if finding:
                print(f"{number}: {deed} at {at} of {path.relative_to(copy)}: {finding}", flush=True)
            print(number, flush=True)


def write(path: Path, data: bytes) -> None:
    """Put other bytes into a file as it is: far faster than emptying it first."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def read(original: Stored, copy: Path, damaged: Path) -> str:
    """What came of reading a damaged copy, "" where it is as it should be."""
    try:
        return original.undetected(copy, original.named.get(damaged.parent.name))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        for beside in copy.parent.glob(f"{copy.name}-*"):
            beside.unlink()


def bound() -> None:
    """Allow some more seconds of CPU; the signal of their end kills."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], range(*map(int, sys.argv[3:])))
