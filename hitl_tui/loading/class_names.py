"""Keeps the names of classes in checkpoints as the project's own programs write and read them.

A serializer of LangGraph writes the module of an object's class, and imports it to read the object. If a
module has a private name in this process (see `modules`), its plain name is written; when reading, the module
is imported for the project to which the checkpoint belongs.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Collection
from typing import Any, Final

from hitl_tui.loading.import_hooks import acting_for
from hitl_tui.loading.modules import PRIVATE, ModuleFolder, plain_name

_OURS: Final = "hitl_keeps_class_names"
_PRIVATE: Final = re.compile(PRIVATE.pattern.encode())


def keep_class_names(serde: Any, folder: ModuleFolder) -> Any:
    """Return a serializer that wraps another one, for the checkpoints of a directory's graphs."""
    if isinstance(serde, _Serializer) or hasattr(type(serde), _OURS):
        return serde
    inner = getattr(serde, "serde", None)
    if inner is not None and hasattr(
        inner, "dumps_typed"
    ):  # a serializer that encrypts what another one has written
        outer = copy.copy(serde)
        outer.serde = keep_class_names(inner, folder)
        return outer
    if not hasattr(serde, "with_msgpack_allowlist"):
        return _Serializer(serde, folder)
    # LangGraph checks for its own serializer class here, and copies it with a list of allowed classes.
    kept = copy.copy(serde)
    kept.__class__ = _kind_of_ours(type(serde), folder)
    return kept


class _Serializer:
    def __init__(self, serde: Any, folder: ModuleFolder) -> None:
        self.serde = serde
        self._folder = folder

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return _with_plain_names(acting_for(self._folder, self.serde.dumps_typed, value))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return acting_for(self._folder, self.serde.loads_typed, data)


def _kind_of_ours(kind: Any, folder: ModuleFolder) -> Any:
    def dumps_typed(self: Any, value: Any) -> tuple[str, bytes]:
        return _with_plain_names(acting_for(folder, kind.dumps_typed, self, value))

    def loads_typed(self: Any, data: tuple[str, bytes]) -> Any:
        return acting_for(folder, kind.loads_typed, self, data)

    def with_msgpack_allowlist(self: Any, extra: Collection[Any]) -> Any:
        return kind.with_msgpack_allowlist(self, plain_names(extra))

    methods = (dumps_typed, loads_typed, with_msgpack_allowlist)
    return type(kind.__name__, (kind,), {_OURS: True, **{method.__name__: method for method in methods}})


def plain_names(classes: Collection[Any]) -> set[tuple[str, ...]]:
    """Return classes by module and name, as checkpoints name them."""
    named = [(kind.__module__, kind.__name__) if isinstance(kind, type) else kind for kind in classes]
    return {(plain_name(module), *rest) for module, *rest in named}


def _with_plain_names(written: tuple[str, bytes]) -> tuple[str, bytes]:
    """Rename modules in a serializer's output.

    In MessagePack objects are extensions of `(module, class, ...)`.
    """
    kind, data = written
    if kind != "msgpack" or not _PRIVATE.search(data):
        return written
    import ormsgpack

    option = ormsgpack.OPT_NON_STR_KEYS

    def rename(code: int, content: bytes) -> Any:
        parts = ormsgpack.unpackb(content, ext_hook=rename, option=option)
        if isinstance(parts, list) and parts and isinstance(parts[0], str) and parts[0] in sys.modules:
            parts[0] = plain_name(parts[0])
        return ormsgpack.Ext(code, ormsgpack.packb(parts, option=option))

    return kind, ormsgpack.packb(ormsgpack.unpackb(data, ext_hook=rename, option=option), option=option)
