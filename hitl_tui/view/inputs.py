"""Reads NAME=VALUE and @FILE as values of inputs and channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.errors import UsageError, in_words
from hitl_tui.given_files import read_given
from hitl_tui.view.format import NotJson, json_or_text, read_json, typed_input


class Inputs:
    """What was given: values of files are JSON already, words wait for the graph to say what they are."""

    def __init__(self, given: Iterable[str], option: str = "--input ", *, files: bool = True) -> None:
        """Read all files and split all pairs, to report mistakes before the app starts.

        Args:
            option: the option before each of them on the command line.
            files: read @FILE. A person who types on a screen may be at another computer, without these files.

        Raises:
            UsageError: neither a pair nor a file, a name given twice, or a file that isn't a JSON object.
        """
        self._option = option
        self._forms = f"write {option}name=value" + (f" or {option}@file.json" if files else "")
        self._values: dict[str, Any] = {}
        self._words: dict[str, str] = {}
        self._is_empty_object = False
        """Whether `{}` was given: to begin without any value is what is wanted."""
        for text in given:
            if text.strip() == "{}":
                self._is_empty_object = True
            elif files and text.startswith("@"):
                read = self._read(Path(text[1:]))
                self._is_empty_object |= not read
                for name, value in read.items():
                    self._check_new(name)
                    self._values[name] = value
            else:
                name, equals, word = text.partition("=")
                if not equals or not name.strip():
                    raise UsageError(f"{self._option}{text!r} has no name and value", self._forms)
                self._check_new(name.strip())
                self._words[name.strip()] = word

    def __bool__(self) -> bool:
        return bool(self._values or self._words or self._is_empty_object)

    def for_graph(self, graph: GraphInfo) -> dict[str, Any]:
        """The values by name of input or channel; a word is JSON where it is and the channel isn't text."""
        return self._values | {name: typed_input(graph, name, word) for name, word in self._words.items()}

    def plain(self) -> dict[str, Any]:
        """The values by name; a word is JSON where it is."""
        return self._values | {name: json_or_text(word) for name, word in self._words.items()}

    def for_channels(self, graph: GraphInfo) -> dict[str, Any]:
        """The values by name of channel; a word is JSON.

        A text channel takes words as they are as well: only a whole JSON string is read as one.
        """
        types = {channel.name: channel.type for channel in graph.channels}
        values = dict(self._values)
        for name, word in self._words.items():
            value = json_or_text(word)
            is_text = types.get(name) == "text"
            values[name] = word if is_text and not isinstance(value, str) else value
        return values

    def _check_new(self, name: str) -> None:
        if name in self._values or name in self._words:
            raise UsageError(f"{self._option.strip() or 'the command'} gives {name!r} twice", "leave one out")

    def _read(self, path: Path) -> Mapping[str, Any]:
        where = f"{self._option}@{path}"
        try:
            value = read_json(read_given(path))
        except OSError as error:
            raise UsageError(f"{where}: can't be read: {error.strerror}", self._forms) from None
        except NotJson as error:
            raise UsageError(f"{where}: no JSON: {error}", "the file must hold a JSON object") from None
        if not isinstance(value, dict):
            raise UsageError(f"{where}: holds {in_words(value)}", "it must be a JSON object")
        return value
