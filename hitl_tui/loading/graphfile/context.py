"""What the parts of a graph file are checked against while its graph is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hitl_tui.engine.channels.channel import RUN_INPUTS, BoundChannel
from hitl_tui.loading import positions
from hitl_tui.loading.graphfile.problems import Problems
from hitl_tui.loading.graphfile.shape import GraphFile


@dataclass(frozen=True)
class Context:
    """A decoded file, where it lies, and the problems found so far.

    Attributes:
        declared: every channel the file names, those with problems included, so that one mistake
            in a channel is not reported again at each place that uses it.
        bound: the channels that are sound.
    """

    file: GraphFile
    directory: Path
    problems: Problems
    declared: tuple[str, ...]
    bound: Mapping[str, BoundChannel]

    def check_channel(self, path: positions.Path, name: str) -> bool:
        """Note a problem at `path` unless `name` is a channel of the file."""
        if name not in self.declared:
            self.problems.unknown(path, "channel", name, self.declared)
        return name in self.declared

    def check_node(self, path: positions.Path, name: str, also: Iterable[str] = ()) -> bool:
        """Note a problem at `path` unless `name` is a node of the file, or one of `also`."""
        known = (*self.steps, *also)
        if name not in known and name in self.file.nodes:
            group = self.member_of(name)
            self.problems.add(path, f"{name!r} runs in the parallel {group!r}", f"name {group!r} instead")
        elif name not in known:
            self.problems.unknown(path, "node", name, known)
        return name in known

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of all nodes that edges may lead to, whatever they are made of."""
        file = self.file
        names = (*file.nodes, *file.maps, *file.parallels, *file.subgraphs)
        return tuple(name for name in names if not self.member_of(name))

    def member_of(self, name: str) -> str:
        """The parallel that a node runs in, "" where it stands by itself."""
        return next((group for group, table in self.file.parallels.items() if name in table.nodes), "")

    def readable(self, path: positions.Path, given: str | list[str]) -> tuple[str, ...]:
        """`reads` as the engine takes it; the run's own inputs can always be read."""
        names = _listed(given)
        for name in names:
            if name != "*" and name not in RUN_INPUTS:
                self.check_channel(path, name.partition(".")[0])
        return tuple(name for name in names if name not in RUN_INPUTS)

    def writable(self, path: positions.Path, given: str | list[str]) -> tuple[str, ...] | None:
        """`writes` as the engine takes it: None for all."""
        names = _listed(given)
        for name in names:
            if name != "*":
                self.check_channel(path, name)
        return None if "*" in names else names


def _listed(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
