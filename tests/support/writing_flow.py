"""A graph whose node writes to the terminal in every way there is, and what would steer that."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from typing import Any

from hitl_tui import END, START, Channel, StateGraph

STEER = "\x1b[2J\x1b]52;c;aGFja2Vk\x07\x9b31m\x1bc"


def line(way: str) -> str:
    return f"{way}-{STEER}-end\n"


def with_c(way: str) -> None:
    """As a library in C writes: neither Python's streams nor its buffers are part of it."""
    data = line(way).encode()
    ctypes.CDLL(None).write(1, data, len(data))


def write(state: Any) -> dict[str, Any]:
    print(line("print"), end="")
    sys.stderr.write(line("stderr"))
    assert sys.__stdout__
    assert sys.__stderr__
    sys.__stdout__.write(line("dunder-out"))
    sys.__stderr__.writelines([line("dunder-err")])
    sys.stdout.buffer.write(line("buffer").encode())
    logging.getLogger("theirs").error(line("logging").strip())
    warnings.warn(line("warnings").strip(), stacklevel=1)
    os.write(1, line("os-1").encode())
    os.write(2, line("os-2").encode())
    os.write(2, b"raw-\x9b31m-\xff-end\n")
    with_c("c")
    subprocess.run(["printf", "%s", line("printf")], check=True)
    subprocess.run(["sh", "-c", 'printf %s "$0" >&2', line("printf-err")], check=True)
    for job in (lambda: print(line("thread"), end=""), lambda: os.write(2, line("thread-fd").encode())):
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
    child = multiprocessing.get_context("fork").Process(
        target=print, args=(line("fork"),), kwargs={"flush": True}
    )
    child.start()
    child.join()
    sys.stdout.write("unended-" + STEER)
    return {"draft": "x"}


WAYS = (
    "print", "stderr", "dunder-out", "dunder-err", "buffer", "logging", "warnings", "os-1", "os-2", "c",
    "printf", "printf-err", "thread", "thread-fd", "fork",
)  # fmt: skip

print(line("built"), end="")
os.write(1, line("built-fd").encode())

graph = StateGraph({"draft": Channel("")}).add_node("write", write)
graph.add_edge(START, "write").add_edge("write", END)
