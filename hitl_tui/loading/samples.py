"""The graphs that come with us, which GRAPH may name without a path, as in `advisor`."""

from __future__ import annotations

from pathlib import Path


def sample_path(name: str) -> Path | None:
    """The file of a sample, None where there is none of that name."""
    path = _folder() / f"{name}.py"
    return path if name.isidentifier() and path.is_file() else None


def sample_names() -> list[str]:
    """The names of all samples."""
    return sorted(path.stem for path in _folder().glob("*.py"))


def _folder() -> Path:
    """Inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_bundled" / "sample_graphs"
    return installed if installed.is_dir() else package.parent / "sample_graphs"
