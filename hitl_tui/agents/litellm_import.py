"""Imports litellm late, off every event loop, and quiet: a screen is shown while it works."""

from __future__ import annotations

import gc
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_lock = threading.Lock()
_importing: Future[Any] | None = None


def preload() -> Future[Any]:
    """Start importing litellm in a daemon thread, once for the process; it takes about 3 s.

    Returns:
        a future of the module; it carries the ImportError if litellm can't be imported.
    """
    global _importing  # noqa: PLW0603  (the process has one)
    with _lock:
        if _importing is None:
            _importing = Future()
            _importing.set_running_or_notify_cancel()  # a caller that gives up must not cancel it
            # A daemon, not an executor's thread: those are joined when the process quits.
            threading.Thread(target=_import, args=(_importing,), name="litellm-import", daemon=True).start()
        return _importing


def _import(result: Future[Any]) -> None:
    try:
        # Read at import; without it litellm fetches its price list from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Else it reads a file .env of a directory above, which may name another server for a key.
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        warnings.filterwarnings("ignore", module=r"(litellm|pydantic|aiohttp)\b")
        with _uncollected():
            litellm = import_module("litellm")
        _silence(litellm)
    except BaseException as error:
        result.set_exception(error)
    else:
        result.set_result(litellm)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile, and none of what has come to stay ever after.

    A collection walks over the hundreds of thousands of objects that litellm brings, and a screen
    stands still for that long: a tenth of a second and more.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _silence(litellm: Any) -> None:
    """No advice on stdout, no telemetry, no downloads, no log lines on the terminal."""
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.propagate = False
