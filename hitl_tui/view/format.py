"""Formats values, amounts and times for people, and reads JSON that a person typed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from math import isinf
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate, LimitNear, PriceUnknown
from hitl_tui.engine.log.records import NO_PERSON, Checkpoint, LedgerEntry, MadeBy
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, plain_text, trusted

if TYPE_CHECKING:
    from hitl_tui.engine.graph.description import GraphInfo


class NotJson(ValueError):
    """The text is not JSON; the message says where and why."""


def read_json(text: str | bytes) -> Any:
    """Read a JSON text; bytes are UTF-8.

    Raises:
        NotJson: it is not JSON; says for instance `line 1, column 7: expecting value`.
    """
    import json

    try:
        return json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_without_repeats
        )
    except json.JSONDecodeError as error:
        # Python's messages may end in "at", as the place follows; here the place comes first.
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        raise NotJson(f"line {error.lineno}, column {error.colno}: {what[:1].lower()}{what[1:]}") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8 text") from None
    except NotJson:
        raise
    except ValueError:  # the remaining cause is Python's limit on the digits of a number in a text
        raise NotJson("a number in it has too many digits") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise NotJson(f"{name!r} occurs twice, and only one value can be used")
        found[name] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise NotJson(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise NotJson(f"{digits} is larger than any number here")
    return number


def typed_input(graph: GraphInfo, name: str, word: str) -> Any:
    """Read a word as the value of an input or a channel: as JSON if it is JSON and the channel isn't text.

    For a channel that appends, the input is one item, which may be text.  For another list it is the list, or
    text if the word is no list.

    Args:
        name: the name of an input field or a channel.
    """
    fields = {field.name: field.channel for field in graph.inputs}
    channel = next((each for each in graph.channels if each.name == fields.get(name, name)), None)
    if channel is None or channel.type not in ("text", "list"):
        return json_or_text(word)
    appends = channel.reducer == "append" or channel.reducer.startswith("last_n(")
    if channel.type == "text" or (appends and name in fields):
        return word
    value = json_or_text(word)
    return value if isinstance(value, list) or name not in fields else word


def json_or_text(word: str) -> Any:
    """Read a word as JSON; return the word itself if it is not JSON."""
    try:
        return read_json(word)
    except NotJson:
        return word


HUMAN: Final = "you"
_UNNAMED: Final = "somebody"
"""A nameless person; the reader may be somebody else."""
REPLACED: Final = "replaced"
"""Describes a value that replaced another one past its reducer, without a person."""
_MADE_BY: Final[Mapping[str, str]] = {**NO_PERSON, "node": "the graph"}
_NAME_LIMIT: Final = 40


def writer(checkpoint: Checkpoint) -> str:
    """Return who wrote a step: the node's or person's name, "input", "fork" and so on; sanitised."""
    if checkpoint.source == "human":
        return sanitise_line(person(checkpoint.actor, checkpoint.made_by), _NAME_LIMIT)
    if checkpoint.source == "rollback":
        return sanitise_line(f"undo {checkpoint.node.rpartition('>/')[2]}", _NAME_LIMIT)
    if checkpoint.source == "fork" and checkpoint.actor:
        return sanitise_line(checkpoint.actor, _NAME_LIMIT)
    if checkpoint.node:
        return sanitise_line(checkpoint.node, _NAME_LIMIT)
    return checkpoint.source


def person(actor: str | None, made_by: MadeBy) -> str:
    """Return who decided or edited: a person's name, or what acted in place of a person."""
    return actor or _MADE_BY.get(made_by, _UNNAMED)


def is_set_by_person(update: AppliedUpdate) -> bool:
    """Whether a person, or what decides in place of a person, set a value by an edit.

    A node or an input can also replace a value past its reducer.
    """
    return update.op == "set" and update.source not in ("node", "map", "subgraph", "input")


def decider(entry: LedgerEntry) -> str:
    """Return who decided: a person's name, or what acted in place of one; "" for a nameless person."""
    if entry.actor or entry.login:
        return identity(entry.actor, entry.login, entry.account)
    return _MADE_BY.get(entry.made_by, "")


def identity(actor: str | None, login: str, account: str = "") -> str:
    """Return a person's stated name, and their names in the operating system and the database.

    For instance "bob (ann@box, login ann)"; a login that equals the name is not repeated.
    """
    known = [sanitise_line(account, _NAME_LIMIT)] if account else []
    if login and login != actor:
        known.append(f"login {sanitise_line(login, _NAME_LIMIT)}")
    name = sanitise_line(actor, _NAME_LIMIT) if actor else _UNNAMED
    return f"{name} ({', '.join(known)})" if known else name


def limit_line(alert: LimitNear) -> str:
    """Return text such as `75 % of the tokens are used: 7,600 of 10,000`."""
    used, allowed, what = f"{alert.used:,.0f}", f"{alert.allowed:,.0f}", alert.limit.partition("_")[2]
    if alert.limit == "max_cost_usd":
        used, allowed, what = cost(alert.used), cost(alert.allowed), "money"
        return f"{alert.percent} % of the {what} is used: {used} of {allowed}"
    if alert.limit == "max_seconds":
        used, allowed = duration(int(alert.used * 1e6)), duration(int(alert.allowed * 1e6))
        return f"{alert.percent} % of the time is used: {used} of {allowed}"
    return f"{alert.percent} % of the {what} are used: {used} of {allowed}"


def price_line(event: PriceUnknown) -> str:
    """Return text such as `the price of m is unknown, so the run stops at its limit of $0.50`."""
    effect = "the run stops at its" if event.stops else "the call is not counted in the"
    model = sanitise_line(event.model, _NAME_LIMIT)
    return f"the price of {model} is unknown, so {effect} limit of {cost(event.allowed)}"


Kind = Literal["null", "bool", "number", "text", "list", "object", "private", "other"]

PRIVATE_TEXT: Final = "[private]"
_LONG_TEXT: Final = 60
_HUGE_NUMBER: Final = 10**40
_KEYS_SHOWN: Final = 8
_SECOND: Final = 1_000_000


_KINDS: Final[Mapping[type, Kind]] = {
    str: "text", int: "number", float: "number", bool: "bool", NoneType: "null", list: "list", tuple: "list",
    dict: "object",
}  # fmt: skip


def kind(value: Any) -> Kind:
    """Return the kind of a value in one word."""
    known = _KINDS.get(type(value))  # true for nearly all
    if known is not None:
        return known
    if value is PRIVATE:
        return "private"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list | tuple):
        return "list"
    return "object" if isinstance(value, Mapping) else "other"


def size(value: Any) -> str:
    """Return the size of a value: "list 4", "text 612", "3 keys"; "" if it has none."""
    what = kind(value)
    if what in ("text", "list"):
        return f"{what} {len(value)}"
    return count(len(value), "key") if what == "object" else ""


def count(n: int, noun: str) -> str:
    """ "1 line", "5 lines"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def capital(words: str) -> str:
    """Return a text with its first letter in upper case."""
    return words[:1].upper() + words[1:]


def preview_line(value: Any, limit: int = 80) -> Line:
    """Return `preview` as spans: the size dim, the value with the role value."""
    what = kind(value)
    if what == "private":
        return (trusted(PRIVATE_TEXT, "private"),)
    if what == "text" and (len(value) > _LONG_TEXT or "\n" in value):
        return _with_size(size(value) + " ", quoted(value, limit - len(size(value)) - 1))
    if what == "list":
        last = f"  {inline(value[-1], limit - len(size(value)) - 2)}" if value else ""
        return _with_size(size(value), last)
    if what == "object":
        keys = inline(value, limit - len(size(value)) - 1)
        return (
            (trusted(keys, "value"), trusted(f" {size(value)}", "dim"))
            if value
            else (trusted("{}", "value"),)
        )
    return (trusted(inline(value, limit), "value"),)


def _with_size(text: str, value: str) -> Line:
    return (trusted(text, "dim"), trusted(value, "value")) if value else (trusted(text, "dim"),)


def preview(value: Any, limit: int = 80) -> str:
    """Return a value on one line of about `limit` cells, at a cost independent of its size."""
    return plain_text(preview_line(value, limit))


def inline(value: Any, limit: int = 80) -> str:
    """Return a value inside a sentence: “text”, 12, null, list 4, {id: 4, b: {…}}, [private]; sanitised."""
    what = kind(value)
    if what == "private":
        return PRIVATE_TEXT
    if what == "text":
        return quoted(value, limit)
    if what == "list":
        return size(value)
    if what == "object":
        return "{" + _cut(_members(value, limit - 2), max(limit - 2, 1)) + "}"
    return _cut(scalar(value), max(limit, 1))


def _members(value: dict[str, Any], room: int) -> str:
    """Return the first members of an object, with their values if all names fit."""
    names = [sanitise_line(str(name), 24) for name in islice(value, _KEYS_SHOWN)]
    more = ["…"] if len(value) > _KEYS_SHOWN else []
    left = room - sum(len(name) + 4 for name in (*names, *more))
    if left < len(names):
        return ", ".join((*names, *more))
    members = []
    for at, (name, member) in enumerate(zip(names, value.values(), strict=False)):
        share = max(left // (len(names) - at), 1)
        text = "{…}" if kind(member) == "object" and member else inline(member, share)
        left -= len(text)
        members.append(f"{name}: {text}")
    return ", ".join((*members, *more))


def scalar(value: Any) -> str:
    """Return null, true or a number as text; for values that are not JSON, just the type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Python refuses to format very long integers, and needs quadratic time for long ones.
        return str(value) if abs(value) < _HUGE_NUMBER else f"integer of {value.bit_length():,} bits"
    if isinstance(value, float):
        return repr(value)
    return f"⟨{sanitise_line(type(value).__name__, 40)}⟩"


def quoted(text: str, limit: int) -> str:
    """Return a text in quotation marks on one line of about `limit` cells."""
    return f"“{sanitise_line(text, max(limit - 2, 1))}”"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tokens(n: int) -> str:
    """ "214 tok", "1.2k tok", "3.4M tok"."""
    if n < 1_000:
        return f"{n} tok"
    return f"{n / 1_000:.1f}k tok" if n < 999_950 else f"{n / 1_000_000:.1f}M tok"


def cost(usd: float, known: bool = True) -> str:
    """ "$0.0123"; "≥ $0.0123" where only a part is known, "cost unknown" where nothing is."""
    if not known and usd == 0:
        return "cost unknown"
    amount = f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"
    if 0 < usd < 0.0001:
        amount = "<$0.0001"
    return amount if known else f"≥ {amount}"


def filled(size: int) -> str:
    """ "812 B", "12.4 KB", "3.1 MB" of bytes, by thousands."""
    if size < 1_000:
        return f"{size} B"
    amount, unit = float(size), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        amount, unit = amount / 1_000, larger
        if amount < 999.95:
            break
    return f"{amount:.1f} {unit}"


def duration(us: int) -> str:
    """ "< 1 ms", "50 ms", "8.4 s", "2m 05s", "1h 02m": how long something took, of microseconds."""
    if us < _SECOND // 10:
        return f"{us // 1_000} ms" if us >= 1_000 else "< 1 ms"
    return stopwatch(us)


def stopwatch(us: int) -> str:
    """ "0.0 s", "8.4 s", "2m 05s", "1h 02m": a time that is still running, of microseconds."""
    tenths = max(us, 0) // (_SECOND // 10)
    if tenths < 600:
        return f"{tenths / 10:.1f} s"
    minutes, seconds = divmod(tenths // 10, 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


_LAST: Final = 253_370_000_000_000_000
"""A time in the year 9999, the last that a calendar can show."""


def local_time(at: int) -> str:
    """Return a moment by the user's clock, with the date if that is not today.

    Args:
        at: microseconds since the epoch.
    """
    moment = datetime.fromtimestamp(min(at, _LAST) / 1e6)
    return f"{moment:%H:%M}" if moment.date() == datetime.now().date() else f"{moment:%Y-%m-%d %H:%M}"


def ago(at: int, now: int) -> str:
    """ "just now", "5 m ago", "3 d ago"."""
    seconds = max(now - at, 0) // _SECOND
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"
