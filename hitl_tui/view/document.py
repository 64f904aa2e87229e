"""Lays out a value as a document to read: Markdown, chat messages, mails, code.

Texts are sanitised before anything reads them, so a document has nothing that could control a terminal.
markdown-it parses the Markdown; each piece of text knows where it comes from, so that changes and comments
of the source can be shown at their places.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.format import PRIVATE_TEXT, inline
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Role
from hitl_tui.view.value_lines import JsonLines, json_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind = Literal["heading", "text", "code", "table", "rule", "field", "removed"]

_LARGEST: Final = 256 * 1024
"""Most characters that are read as Markdown; longer texts are shown as they are."""
_FILLED: Final = 50
"""Cells from which a line was broken by its width: such lines are joined, shorter ones are kept."""
_MESSAGES: Final = 2_000
_NAME: Final = 60
_LONGEST_CODE: Final = 20_000
"""Most characters of code that are highlighted."""
_BULLET: Final = "• "
_QUOTE: Final = "│ "
_HEADERS: Final = ("from", "to", "cc", "bcc", "reply_to", "date", "subject")
_BODIES: Final = ("body", "text", "content", "message")
_ROLE_KEYS: Final = ("role", "type")


class TextPiece(msgspec.Struct, frozen=True, gc=False):
    """Text of one role.

    Args:
        at: where it begins in the source, -1 if it is not in the source.
        mark: the number of the change that it shows, -1 for none.
    """

    text: str
    role: Role = "plain"
    at: int = -1
    mark: int = -1


Pieces = tuple[TextPiece, ...]


class Block(msgspec.Struct, frozen=True):
    """A paragraph, heading, list item, table or piece of code.

    Args:
        lines: each is wrapped by itself.
        start, end: its range in the source.
        first, rest: what precedes its first row, and the others: the sign of a list item, of a quotation.
        gap: whether a blank row precedes it.
        level: of a heading, from 1.
        cells: of a table, the pieces of each cell, row by row; the first row is its head.
        aligned: of a table, how each column is aligned.
    """

    kind: BlockKind
    lines: tuple[Pieces, ...] = ()
    start: int = 0
    end: int = 0
    first: str = ""
    rest: str = ""
    gap: bool = True
    level: int = 0
    cells: tuple[tuple[Pieces, ...], ...] = ()
    aligned: tuple[str, ...] = ()


class TextPart(msgspec.Struct, frozen=True):
    """One text of a value.

    Args:
        path: its place: the channel and the path in its value.
        raw: the text as it is, "" if nothing in it can be commented on; `text` is the sanitised one, which
            the blocks show.
    """

    path: str
    raw: str
    text: str
    blocks: tuple[Block, ...]

    def raw_offset(self, at: int) -> int:
        """Return the position in the raw text of a character of the sanitised one."""
        if self.raw == self.text:
            return at
        found = bisect_left(range(len(self.raw)), at, key=lambda end: len(sanitise(self.raw[:end])))
        return found + (self.raw[found - 1 : found + 1] == "\r\n")

    def clean_offset(self, at: int) -> int:
        """Return the position in the sanitised text of a character of the raw one."""
        return at if self.raw == self.text else len(sanitise(self.raw[:at]))


Document = tuple[TextPart, ...]


def document(channel: str, value: Any, *, source: bool = False) -> Document:
    """Return a value as a document.

    Args:
        source: show the texts as they are, and anything else as JSON.
    """
    if value is PRIVATE:
        block = Block("text", ((TextPiece(PRIVATE_TEXT, "private"),),), gap=False)
        return (TextPart(channel, "", "", (block,)),)
    if isinstance(value, str):
        return (_text(channel, value, source=source),)
    if not source and (messages := _messages(value)):
        return tuple(_chat(channel, messages))
    if not source and isinstance(value, Mapping) and (body := _mail_body(value)):
        return _mail(channel, value, body)
    if not source and isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(_text(f"{channel}[{at}]", item) for at, item in enumerate(value[:_MESSAGES]))
    return (_json(channel, value),)


def _text(path: str, raw: str, *, source: bool = False, before: Iterable[Block] = ()) -> TextPart:
    """Return a text, as Markdown or as it is."""
    text = sanitise(raw)
    plain = source or len(text) > _LARGEST
    return TextPart(path, raw, text, (*before, *(_as_it_is(text) if plain else markdown_blocks(text))))


def _as_it_is(text: str) -> Iterator[Block]:
    at = 0
    for line in text.split("\n"):
        yield Block("text", ((TextPiece(line, "plain", at),),), at, at + len(line), gap=False)
        at += len(line) + 1


def _json(path: str, value: Any, *, whole: bool = True) -> TextPart:
    """Return any other value as JSON whose texts keep their line breaks.

    Args:
        whole: whether it is all of the channel: a place in the JSON of a part of it could not be found again.
    """
    lines = list(JsonLines(value, breaks=True))
    text = "\n".join(lines)
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    rows = tuple(_placed(json_spans(line), at) for line, at in zip(lines, starts, strict=False))
    return TextPart(path, text if whole else "", text, (Block("code", rows, 0, len(text)),))


def _placed(spans: Iterable[Any], at: int) -> Pieces:
    pieces = []
    for span in spans:
        pieces.append(TextPiece(span.text, span.role, at))
        at += len(span.text)
    return tuple(pieces)


# Chats and mails.


def _messages(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a chat, () if it is none: each has a role and a content."""
    items = value if isinstance(value, list) else ()
    if not items or len(items) > _MESSAGES:
        return ()
    return items if all(_is_message(item) for item in items) else ()


def _is_message(item: Any) -> bool:
    return (
        isinstance(item, Mapping)
        and any(isinstance(item.get(key), str) for key in _ROLE_KEYS)
        and ("content" in item or "tool_calls" in item)
    )


def _chat(channel: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[TextPart]:
    for number, message in enumerate(messages):
        path = f"{channel}[{number}]"
        who = next(str(message[key]) for key in _ROLE_KEYS if isinstance(message.get(key), str))
        name = message.get("name")
        shown = sanitise_line(who, _NAME) + (
            f" · {sanitise_line(name, _NAME)}" if isinstance(name, str) and name else ""
        )
        head = Block("heading", ((TextPiece(shown, "caption"),),), level=2)
        content = message.get("content")
        if isinstance(content, str):
            yield _text(f"{path}.content", content, before=(head, *_calls(message)))
        elif isinstance(content, list) and all(_is_text_part(part) for part in content):
            yield TextPart(f"{path}.content", "", "", (head, *_calls(message)))
            for at, part in enumerate(content):
                yield _text(f"{path}.content[{at}].text", part["text"])
        else:
            yield TextPart(f"{path}.content", "", "", (head, *_calls(message)))
            if content is not None:
                yield _json(f"{path}.content", content, whole=False)


def _is_text_part(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


def _calls(message: Mapping[str, Any]) -> Iterator[Block]:
    """Return the tool calls of a message, a row each."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            inner = call.get("function") if isinstance(call.get("function"), Mapping) else call
            assert isinstance(inner, Mapping)
            given = inner.get("arguments", inner.get("args"))
            words = given if isinstance(given, str) else "\n".join(JsonLines(given, breaks=True))
            head = TextPiece(f"calls {sanitise_line(str(inner.get('name', '')), _NAME)}", "name")
            rows = tuple((TextPiece(row),) for row in sanitise(words).split("\n"))
            yield Block("code", ((head,), *rows))


def _mail_body(value: Mapping[str, Any]) -> str:
    """Return the key of a mail's body, "" if the value is no mail."""
    known = {key.lower() for key in value if isinstance(key, str)}
    keys = {key.lower(): key for key in value if isinstance(key, str) and isinstance(value[key], str)}
    is_mail = len(known & {"to", "from", "subject"}) >= 2
    return next((keys[name] for name in _BODIES if name in keys), "") if is_mail else ""


def _is_short(item: Any) -> bool:
    """Whether a value fits in a row: a short text, a number, or a list of short texts."""
    items = item if isinstance(item, list) else [item]
    return bool(items) and all(
        isinstance(each, str | int | float) and len(str(each)) <= _NAME and "\n" not in str(each)
        for each in items
    )


def _mail(channel: str, value: Mapping[str, Any], body: str) -> Document:
    """Return a mail: its headers, its text, and whatever else there is as JSON."""
    names = {key.lower(): key for key in value if isinstance(key, str)}
    heads = [names[name] for name in _HEADERS if name in names and name != body.lower()]
    heads += [key for key, item in value.items() if key not in (*heads, body) and _is_short(item)]
    wide = max(min(len(name), _NAME) for name in heads) + 2
    parts: list[TextPart] = []
    for key in heads:
        shown = value[key]
        listed = isinstance(shown, list) and all(isinstance(item, str) for item in shown)
        raw = ", ".join(shown) if listed else shown if isinstance(shown, str) else inline(shown, 2_000)
        text = sanitise_line(raw, 2_000)
        lead = f"{sanitise_line(key.replace('_', ' ').capitalize(), _NAME):<{wide}}"
        block = Block("field", ((TextPiece(text, "value", 0),),), 0, len(text), lead, " " * wide, gap=False)
        # A place in a list would be none in its items, so that nothing is commented on there.
        parts.append(TextPart(f"{channel}.{key}", raw if isinstance(shown, str) else "", text, (block,)))
    rule = Block("rule", gap=False)
    parts.append(_text(f"{channel}.{body}", value[body], before=(rule,)))
    rest = {key: item for key, item in value.items() if key not in (*heads, body)}
    return (*parts, *((_json(channel, rest, whole=False),) if rest else ()))


# Markdown.


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # HTML stays the text that it is: nothing here interprets it.
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks of a sanitised text in Markdown."""
    blocks = _Blocks(text)
    shown = list(blocks.read(_parser().parse(text)))
    # Nothing is hidden: not what defines a link, and not what is nested too deeply to be parsed.
    return tuple(sorted((*shown, *blocks.unshown()), key=lambda block: block.start))


class _Item(msgspec.Struct):
    """A list item or quotation that is open: its sign, shown only once, and whether its list is dense."""

    first: str
    rest: str
    used: bool = False


class _Blocks:
    """Turns the tokens of a text into blocks, and finds each piece of text in the source."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n"), len(text) + 1]
        self._at = 0
        self._open: list[_Item] = []
        self._numbers: list[int | None] = []
        self._is_first = True
        self._dense = False
        self._shown: set[int] = set()
        """Numbers of the lines that blocks show."""

    def read(self, tokens: Sequence[Token]) -> Iterator[Block]:
        """Yield the blocks in order."""
        at = 0
        while at < len(tokens):
            token = tokens[at]
            match token.type:
                case "bullet_list_open" | "ordered_list_open":
                    start = int(token.attrGet("start") or 1) if token.type.startswith("ordered") else None
                    self._numbers.append(start)
                case "bullet_list_close" | "ordered_list_close":
                    self._numbers.pop()
                    self._dense = bool(self._numbers)
                case "list_item_open":
                    self._open_item()
                case "blockquote_open":
                    self._open.append(_Item(_QUOTE, _QUOTE))
                case "list_item_close" | "blockquote_close":
                    self._open.pop()
                case "heading_open":
                    yield self._leaf(tokens[at + 1], "heading", int(token.tag[1:]))
                    at += 2
                case "inline":
                    hidden = tokens[at - 1].hidden
                    yield self._leaf(token, "text", dense=hidden)
                case "fence" | "code_block":
                    yield self._code(token)
                case "hr":
                    yield self._block("rule", (), token)
                case "table_open":
                    end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close")
                    yield self._table(tokens[at : end + 1])
                    at = end
            at += 1

    def unshown(self) -> Iterator[Block]:
        """Yield the lines of the text that no block shows, as they are."""
        for number, start in enumerate(self._starts[:-1]):
            line = self._text[start : self._starts[number + 1] - 1]
            if line.strip() and number not in self._shown:
                yield Block("text", ((TextPiece(line, "dim", start),),), start, start + len(line), gap=False)

    def _open_item(self) -> None:
        number = self._numbers[-1] if self._numbers else None
        sign = _BULLET if number is None else f"{number}. "
        if number is not None:
            self._numbers[-1] = number + 1
        self._open.append(_Item(sign, " " * len(sign)))

    def _block(
        self, kind: BlockKind, lines: tuple[Pieces, ...], token: Token, level: int = 0, *,
        dense: bool = False, cells: tuple[tuple[Pieces, ...], ...] = (), aligned: tuple[str, ...] = (),
    ) -> Block:  # fmt: skip
        start, end = self._range(token)
        self._shown.update(range(*(token.map or (0, 0))))
        new_item = bool(self._open) and not self._open[-1].used
        first = "".join(item.rest if item.used else item.first for item in self._open)
        rest = "".join(item.rest for item in self._open)
        for item in self._open:
            item.used = True
        close = dense and (self._dense if new_item else True)
        gap = not (self._is_first or close)
        self._is_first, self._dense = False, dense
        return Block(kind, lines, start, end, first, rest, gap, level, cells, aligned)

    def _range(self, token: Token) -> tuple[int, int]:
        lines = token.map or [0, 0]
        return self._starts[lines[0]], max(self._starts[min(lines[1], len(self._starts) - 1)] - 1, 0)

    def _leaf(self, token: Token, kind: BlockKind, level: int = 0, *, dense: bool = False) -> Block:
        start, end = self._range(token)
        self._at = max(self._at, start)
        base: Role = "plain" if kind != "heading" else "caption" if level == 1 else "title"
        lines = tuple(self._inline(token.children or (), end, base))
        return self._block(kind, lines, token, level, dense=dense)

    def _inline(self, tokens: Sequence[Token], end: int, base: Role) -> Iterator[Pieces]:
        """Yield the lines of a paragraph; lines that were broken by their width are joined."""
        pieces: list[TextPiece] = []
        roles = [base]
        links: list[str] = []
        length = 0
        for token in tokens:
            kind = token.type
            if kind in ("softbreak", "hardbreak"):
                broken = self._text.find("\n", self._at, end + 1)
                self._at = broken + 1 if broken >= 0 else self._at
                if kind == "softbreak" and length >= _FILLED:
                    pieces.append(TextPiece(" ", roles[-1], broken))
                else:
                    yield tuple(pieces)
                    pieces = []
                length = 0
            elif kind == "image":
                found = tuple(self._found(token.content, "plain", end))
                source = _target(token, "src")
                pieces += [TextPiece("[image: ", "dim"), *found, TextPiece(f"] ({source})", "dim")]
            elif kind == "link_open":
                links.append(_target(token, "href"))
                roles.append("name")
            elif kind == "link_close":
                roles.pop()
                target = links.pop()
                shown = pieces[-1].text if pieces else ""
                # A link must not look like one to another place.
                if target not in (shown, f"mailto:{shown}"):
                    pieces.append(TextPiece(f" ({target})", "dim"))
            elif kind.endswith("_open"):
                roles.append(_ROLES.get(kind, roles[-1]))
            elif kind.endswith("_close"):
                roles.pop()
            elif token.content:
                role = "value" if kind == "code_inline" else roles[-1]
                pieces += self._found(token.content, role, end)
                length += len(token.content)
        yield tuple(pieces)

    def _found(self, content: str, role: Role, end: int) -> Iterator[TextPiece]:
        """Find a text in the source from where the last one ended, and word by word if it is not verbatim."""
        at = self._text.find(content, self._at, end + 1)
        if at >= 0:
            self._at = at + len(content)
            yield TextPiece(content, role, at)
            return
        for number, word in enumerate(content.split(" ")):
            lead = " " if number else ""
            at = self._text.find(word, self._at, end + 1) if word else -1
            self._at = at + len(word) if at >= 0 else self._at
            yield from (TextPiece(lead, role),) if lead else ()
            yield from (TextPiece(word, role, at),) if word else ()

    def _code(self, token: Token) -> Block:
        """Return highlighted code."""
        start, end = self._range(token)
        self._at = max(self._at, start + (token.type == "fence") * len(token.info + token.markup))
        lines: list[Pieces] = []
        for row in _highlighted(token.content.removesuffix("\n"), token.info.split(" ")[0]):
            pieces: list[TextPiece] = []
            for text, role in row:
                at = self._text.find(text, self._at, end + 1)
                self._at = at + len(text) if at >= 0 else self._at
                pieces.append(TextPiece(text, role, at))
            lines.append(tuple(pieces))
        if " " in token.info.strip():  # more than the language
            lines.insert(0, (TextPiece(token.info.strip(), "dim"),))
        self._at = end
        return self._block("code", tuple(lines), token)

    def _table(self, tokens: Sequence[Token]) -> Block:
        rows: list[list[Pieces]] = []
        aligned: list[str] = []
        for at, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
                self._at = max(self._at, self._range(token)[0])
            elif token.type in ("th_open", "td_open"):
                head = token.type == "th_open"
                end = self._range(tokens[0])[1]
                lines = self._inline(tokens[at + 1].children or (), end, "title" if head else "plain")
                rows[-1].append(tuple(piece for line in lines for piece in line))
                if head:
                    style = str(token.attrGet("style") or "")
                    aligned.append(style.rpartition(":")[2].strip())
        cells = tuple(tuple(row) for row in rows)
        return self._block("table", (), tokens[0], cells=cells, aligned=tuple(aligned))


def _target(token: Token, attribute: str) -> str:
    """Return where a link leads, and its title."""
    title = token.attrGet("title")
    return f"{token.attrGet(attribute) or ''}{f' “{title}”' if title else ''}"


_ROLES: Final[Mapping[str, Role]] = {"strong_open": "title", "em_open": "emphasis", "s_open": "removed-word"}


def _highlighted(code: str, language: str) -> Iterator[list[tuple[str, Role]]]:
    """Yield the lines of code, each as texts with their roles."""
    lexed: Iterable[tuple[Any, str]] = ((None, code),)
    if language and len(code) <= _LONGEST_CODE:
        from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
        from pygments.util import ClassNotFound  # type: ignore[import-untyped]

        with suppress(ClassNotFound):
            lexed = get_lexer_by_name(language, stripnl=False, ensurenl=False).get_tokens(code)
    row: list[tuple[str, Role]] = []
    for kind, text in lexed:
        for number, part in enumerate(text.split("\n")):
            if number:
                yield row
                row = []
            if part:
                row.append((part, _code_role(str(kind))))
    yield row


def _code_role(kind: str) -> Role:
    """Return the role of a token of code, by the name of its type."""
    return next((role for name, role in _CODE if kind.startswith(name)), "plain")


_CODE: Final[tuple[tuple[str, Role], ...]] = (
    ("Token.Comment", "dim"),
    ("Token.Keyword", "accent"),
    ("Token.Operator.Word", "accent"),
    ("Token.Literal.String", "ok"),
    ("Token.Literal.Number", "human"),
    ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"),
    ("Token.Name.Tag", "accent"),
    ("Token.Name.Builtin", "value"),
)
