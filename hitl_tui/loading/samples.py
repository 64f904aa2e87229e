"""The graphs that come with us, which GRAPH may name without a path, as in `advisor`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SUFFIXES: Final = (".py", ".toml")


def sample_path(name: str) -> Path | None:
    """The file of a sample, its Python one where there are two; None where there is none of that name."""
    if name not in sample_names():
        return None
    paths = (_folder() / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next(path for path in paths if path.is_file())


def sample_names() -> list[str]:
    """The names of all samples."""
    return sorted({path.stem for path in _folder().iterdir() if path.suffix in _SUFFIXES})


def _folder() -> Path:
    """Inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_bundled" / "sample_graphs"
    return installed if installed.is_dir() else package.parent / "sample_graphs"
