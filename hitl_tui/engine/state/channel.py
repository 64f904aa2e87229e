"""Channels: the named slots of the state, each with a default, a reducer and a schema.

Specified in docs/spec/channels.md.
"""

import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from hitl_tui.declared import calling_line, declares, warn
from hitl_tui.engine.log.records import Visibility
from hitl_tui.engine.log.units import about
from hitl_tui.engine.state.canonical import channel_hash
from hitl_tui.engine.state.reducers import Reducer, ReducerLike, Refused, as_reducer, last_n, overwrite
from hitl_tui.engine.state.schema import ChannelSchema, as_schema, type_word
from hitl_tui.engine.state.values import DEFAULT_MAX_BYTES, normalise
from hitl_tui.errors import GraphInvalid, ReducerError, SchemaMismatch, ValueRejected, described, in_words


class ChannelInfo(msgspec.Struct, frozen=True):
    """A channel as declared; `type` is a short word such as "list", "text" or "number".

    `default` is its value before any node has written, null for a private channel, since graphs are shown and
    exported.  `code` is a digest of a reducer that is a user's function (see `graph.code_digest`).
    """

    name: Annotated[str, about("The channel's name.")]
    type: Annotated[str, about("The type in a word: `text`, `list`, `number`...")]
    reducer: Annotated[str, about("Its reducer.")]
    visibility: Annotated[Visibility, about("Whether its values are shown.")]
    description: Annotated[str, about("What it is for.")]
    schema: Annotated[Mapping[str, Any], about("JSON Schema of its values; empty for any value.")]
    default: Annotated[Any, about("The value before any node has written; null for a private channel.")] = (
        None
    )
    code: str = ""


NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
RUN_INPUTS = ("goal", "constraints")


class _Missing:
    """Marker of a parameter that was not given."""

    def __repr__(self) -> str:
        return "(not given)"


_MISSING: Any = _Missing()


class DefaultRejected(GraphInvalid):
    """A default that does not fit its channel."""


class Channel:
    """Declaration of a channel.

    Args:
        default: the value before any node has written; `initial` is another name for it.
        reducer: a reducer, its text, or a function `(old, new)`; if it is
            missing, a list default gets `last_n(20)` with a warning, everything else `overwrite`.
        schema: a JSON Schema, a Python type or a pydantic model; None fits anything.
        visibility: "private" keeps the value out of streams, default views and exports.
        description: for people and prompts.

    Raises:
        GraphInvalid: a bad reducer, schema or visibility.
    """

    @declares()
    def __init__(
        self,
        default: Any = _MISSING,
        *,
        reducer: ReducerLike | None = None,
        schema: Any = None,
        visibility: Visibility = "public",
        description: str = "",
        initial: Any = _MISSING,
    ) -> None:
        if default is not _MISSING and initial is not _MISSING:
            raise GraphInvalid(
                "a channel takes `default` or `initial`, not both", "`initial` is another name"
            )
        if visibility not in ("public", "private"):
            raise GraphInvalid(f"visibility {visibility!r} is unknown", "use 'public' or 'private'")
        self.default = initial if default is _MISSING else default
        self.reducer = None if reducer is None else as_reducer(reducer)
        self.schema = schema
        self.visibility: Visibility = visibility
        self.description = description
        self.line = calling_line()

    def __repr__(self) -> str:
        default = "" if self.default is _MISSING or self.visibility == "private" else f"{self.default!r:.80}"
        given = [
            default,
            self.reducer and f"reducer={self.reducer.text!r}",
            self.visibility == "private" and "visibility='private'",
        ]
        return f"Channel({', '.join(each for each in given if each)})"


class BoundChannel:
    """A channel with its name, ready to take updates of at most `max_bytes`.

    Args:
        checked: whether its name must follow our rules.
    """

    def __init__(
        self, name: str, channel: Channel, max_bytes: int = DEFAULT_MAX_BYTES, *, checked: bool = True
    ) -> None:
        if checked:
            _check_name(name)
        self.name = name
        self.max_bytes = max_bytes
        self.visibility = channel.visibility
        self._private = channel.visibility == "private"
        self.description = channel.description
        self.reducer = channel.reducer or self._fallback_reducer(channel)
        self.alike = self.reducer.alike
        self.default = self._default(channel)
        self.json_schema = as_schema(channel.schema, name, of_stored=True)
        self.schema = ChannelSchema(
            name,
            self.json_schema,
            self.reducer.part,
            appends=self.reducer.appends,
            picks=self.reducer.kind == "replace",
            private=self._private,
        )
        self._within = int(self.reducer.wraps)
        self._takes_lists = self.reducer.part == "members"
        if channel.default is not _MISSING and self.default is not None:
            self._check_default()
        self.default_hash = channel_hash(self.default)

    def _check_default(self) -> None:
        try:
            self.schema.check_value(self.default)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{error.message}, as its default", error.hint) from None

    @property
    def info(self) -> ChannelInfo:
        """Return the channel as data."""
        return ChannelInfo(
            name=self.name,
            type=type_word(self.json_schema, self.default),
            reducer=self.reducer.text,
            visibility=self.visibility,
            description=self.description,
            schema=self.json_schema,
            default=None if self._private else self.default,
        )

    def accept(self, update: Any, before: Any = None) -> Any:
        """Return an update as a frozen value, checked against its part of the schema.

        Args:
            before: the channel's value; equal parts of the update share its memory.
        """
        within = self._within
        if within and self._takes_lists and isinstance(update, (list, tuple)):
            within = 0
        frozen = normalise(
            update,
            self.name,
            max_bytes=self.max_bytes,
            private=self._private,
            within=within,
            old=before if self.alike else None,
        )
        if not self.schema.is_any:
            self.schema.check_update(frozen)
        return frozen

    def reduce(self, previous: Any, update: Any) -> Any:
        """Return the next value, checked against the whole schema.

        Raises:
            ReducerError: the reducer can't take the update, or a custom one failed.
            SchemaMismatch: the result does not fit.
        """
        reducer = self.reducer
        try:
            value = reducer.reduce(previous, update)
        except Refused as refusal:
            raise self._refusal(refusal) from None
        except Exception as error:
            if not reducer.custom:
                raise
            raise self._broken(error) from (None if self._private else error)
        if reducer.custom:
            return self._check_custom(value, previous)
        if not self.schema.is_any:
            self.schema.check_reduced(value)
        return value

    def _check_custom(self, reduced: Any, previous: Any) -> Any:
        """Check the result of a user's reducer; its size is not limited, only that of updates."""
        value = normalise(reduced, self.name, max_bytes=sys.maxsize, private=self._private, old=previous)
        try:
            self.schema.check_reduced(value)
        except SchemaMismatch as error:
            if value is not None:
                raise
            none = f"the reducer {self.reducer.text} returned None"
            raise SchemaMismatch(f"{error.message}: {none}", "let it return the next value") from None
        return value

    def replace(self, value: Any, before: Any = None) -> Any:
        """Return a human's edit as a frozen value, checked against the schema; no reducer runs.

        Args:
            before: the channel's value, as for `accept`.
        """
        frozen = normalise(value, self.name, max_bytes=self.max_bytes, private=self._private, old=before)
        self.schema.check_value(frozen)
        return frozen

    def _refusal(self, refusal: Refused) -> ReducerError:
        # Errors go into event streams, where a private value must not be quoted.
        why = "refuses the update" if self._private else str(refusal)
        return ReducerError(f"channel {self.name!r}: {self.reducer.text} {why}", refusal.hint)

    def _broken(self, error: Exception) -> ReducerError:
        why = type(error).__name__ if self._private else described(error)
        return ReducerError(
            f"channel {self.name!r}: the reducer {self.reducer.text} raised {why}",
            "a reducer gets (old, new) and returns the next value",
        )

    def _fallback_reducer(self, channel: Channel) -> Reducer:
        if not isinstance(channel.default, (list, tuple)):
            return overwrite()
        warn(
            f"channel {self.name!r} has a list as default and no reducer: it gets last_n(20), which adds "
            "each update as ONE element, so a list written to it becomes nested. Say reducer='overwrite' to "
            "replace the list, 'append' to collect single values, 'extend' to add lists.",
            channel.line,
        )
        return last_n(20)

    def _default(self, channel: Channel) -> Any:
        if channel.default is not _MISSING:
            return normalise(channel.default, self.name, max_bytes=sys.maxsize)
        if self.reducer.kind == "extreme":
            warn(
                f"channel {self.name!r}: {self.reducer.text} starts from 0; say default=None to let the "
                "first update win.",
                channel.line,
            )
        return self.reducer.default


def bind(
    channels: Mapping[str, Channel], max_update_bytes: int = DEFAULT_MAX_BYTES
) -> dict[str, BoundChannel]:
    """Return channels by name, checked; raises `GraphInvalid`."""
    check_channels(channels)
    bound = {}
    for name, channel in channels.items():
        try:
            bound[name] = BoundChannel(name, channel, max_update_bytes)
        except (SchemaMismatch, ValueRejected) as error:
            raise DefaultRejected(error.message, error.hint) from None
    return bound


def check_channels(channels: Mapping[str, Channel]) -> None:
    """Check that channels are a dict of `Channel` with valid names; raises `GraphInvalid`."""
    if isinstance(channels, type):
        raise GraphInvalid(f"the channels are the class {channels.__name__}", _as_channels(channels))
    if not isinstance(channels, Mapping):
        raise GraphInvalid(f"the channels are {in_words(channels)}", 'give a dict, as {"draft": Channel("")}')
    for name, channel in channels.items():
        _check_name(name)
        if not isinstance(channel, Channel):
            instead = (
                f"write Channel(DEFAULT, schema={channel.__name__})"
                if isinstance(channel, type)
                else f"write Channel({channel!r})"
            )
            raise GraphInvalid(f"channel {name!r} is {in_words(channel)}", instead)


def _as_channels(schema: type) -> str:
    """Suggest the channels to write instead of a class that declares the state (a TypedDict or a model)."""
    from typing import get_type_hints

    try:
        fields = get_type_hints(schema)
    except Exception:  # an annotation names something that is imported only for type checkers
        fields = {}
    kinds = {
        name: kind.__name__ for name, kind in fields.items() if isinstance(kind, type) and kind is not dict
    }
    listed = [f'"{name}": Channel(DEFAULT, schema={kind})' for name, kind in list(kinds.items())[:2]]
    more = ", …" if len(fields) > len(listed) else ""
    return (
        f"give a dict, as {{{', '.join(listed)}{more}}}"
        if listed
        else 'give a dict, as {"draft": Channel("")}'
    )


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise GraphInvalid(
            f"channel name {name!r} is not allowed", "a letter, then up to 63 letters, digits, _ or -"
        )
    if name in RUN_INPUTS:
        raise GraphInvalid(
            f"{name!r} is a read-only input of every run", "choose another name for the channel"
        )
