"""Makes the README that a package carries: its links must lead somewhere away from a checkout, too.

They point into `Repository` of `[project.urls]`, at the tag of the version. Until pyproject.toml has that
address, a link becomes its text with the path of the file, which the source distribution has, and pictures
are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\[\]\n]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def page(readme: str, repository: str, version: str) -> str:
    """The README with no relative link."""

    def absolute(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if repository:
            view = "raw" if picture else "blob"
            return f"{picture}[{text}]({repository.rstrip('/')}/{view}/v{version}/{path})"
        if picture:
            return ""
        return text if text == path else f"{text} (`{path}`)"

    return LINK.sub(absolute, readme)


class PyPIPage(MetadataHookInterface):
    """Gives the built metadata its description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description from the README."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        text = page(readme, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
