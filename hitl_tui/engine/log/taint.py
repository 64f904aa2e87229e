"""Taint: which channels hold untrusted data, and where it came from.

Everything that an external node writes is tainted, and so is everything that a node writes after it read a
tainted channel.  Reducers, edits and forks keep the taint; only a human's declassification clears it.

Specified in docs/spec/data.md.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from hitl_tui.engine.log.units import about
from hitl_tui.errors import GraphInvalid

OnTaint = Literal["allow", "warn", "block", "approve"]


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why one update tainted its channel.

    Args:
        step, node: where it happened.
        sources: external sources that the node itself used, such as "web" or "tool search".
    """

    step: int
    node: str
    sources: Annotated[tuple[str, ...], about("The untrusted sources.")] = ()
    channels: Annotated[tuple[str, ...], about("The tainted channels that were read.")] = ()
    cleared: Annotated[bool, about("True if a person declassified it.")] = False


class Taint(msgspec.Struct, frozen=True):
    """A channel that holds untrusted data."""

    channel: Annotated[str, about("The channel.")]
    step: Annotated[int, about("The step that brought it in.", name="since")]
    node: Annotated[str, about("The node that wrote it.")]
    sources: Annotated[tuple[str, ...], about("The untrusted sources, however they reached it.")]


Tainted = Mapping[str, Taint]
"""The tainted channels of a state, by name."""


def declared_policy(node: str, on_taint: Any) -> OnTaint:
    """Return a node's `on_taint`, checked; raises `GraphInvalid`."""
    known: tuple[OnTaint, ...] = get_args(OnTaint)
    for policy in known:
        if policy == on_taint:
            return policy
    raise GraphInvalid(f"node {node!r}: on_taint {on_taint!r} is not known", f"one of {', '.join(known)}")


def declared_source(node: str, external: Any) -> str:
    """Return the declared external source of a node, "" for none; raises `GraphInvalid`."""
    if isinstance(external, bool):
        return node if external else ""
    if isinstance(external, str) and external.strip():
        return external.strip()
    raise GraphInvalid(
        f"node {node!r}: external is {external!r}", "True, or a text that names the source, as 'web'"
    )


def spread(before: Tainted, written: Iterable[tuple[str, Lineage | None]]) -> dict[str, Taint]:
    """Return the tainted channels after a step.

    Args:
        before: the tainted channels before it.
        written: each update's channel and lineage, in order.
    """
    taints = dict(before)
    for channel, lineage in written:
        if lineage is None:
            continue
        if lineage.cleared:
            taints.pop(channel, None)
            continue
        known = taints.get(channel)
        inherited = [source for name in lineage.channels if name in before for source in before[name].sources]
        sources = dict.fromkeys((*(known.sources if known else ()), *inherited, *lineage.sources))
        since = known or lineage
        taints[channel] = Taint(channel, since.step, since.node, tuple(sources))
    return taints


def origin(taint: Taint) -> str:
    """Describe a tainted channel, for errors and notes: `page (web, since step 1, fetch)`."""
    return f"{taint.channel} ({', '.join(taint.sources)}, since step {taint.step}, {taint.node})"
