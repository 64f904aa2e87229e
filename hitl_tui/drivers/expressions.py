"""The one language of expressions over channels: breakpoints, watches, `when`, rules of policies.

An expression is checked before it is used, and an error names its column. It gives a value, or whether it is
true. `null`, `true` and `false` are spelt as in JSON or as in Python. It is limited to comparisons,
arithmetic, `in`, `and`/`or`/`not`, items and parts of values (`facts[-1].source`), comprehensions and a few
functions. It has no other names, no attributes of Python objects, no powers and no shifts.
"""

from __future__ import annotations

import ast
import operator
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.errors import HitlError, UsageError, in_words
from hitl_tui.suggest import did_you_mean

LONGEST: Final = 500
_CONSTANTS: Final[Mapping[str, Any]] = {"null": None, "true": True, "false": False}
"""Words for values; a channel with such a name takes precedence."""
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs, "all": all, "any": any, "float": float, "int": int, "len": len, "max": max, "min": min,
    "round": round, "str": str, "sum": sum,
    "lower": lambda text: str(text).lower(),
}  # fmt: skip
_NODES: Final[tuple[type[ast.AST], ...]] = (
    ast.Expression, ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.IfExp,
    ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
    ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.List, ast.Tuple, ast.Dict, ast.GeneratorExp, ast.ListComp,
    ast.comprehension, ast.Load, ast.Store,
)  # fmt: skip
_ELSEWHERE: Final[Mapping[str, str]] = {
    "=": "write == to compare", "&": "write and", "|": "write or", "!": "write not",
    "?": "write a if c else b",
}  # fmt: skip
"""Syntax of other languages, with what to write here instead."""


class ExpressionInvalid(UsageError):
    """An expression that can't be read; the message shows it with a mark under the position.

    Args:
        why: what is wrong.
        column: the column, from 1.
    """

    title = "The expression can't be read"

    def __init__(self, text: str, why: str, column: int = 1, hint: str = "") -> None:
        super().__init__(f"at column {column}: {why}\n  {text}\n  {' ' * (column - 1)}^", hint)
        self.why = f"{why}; {hint}" if hint else why
        self.column = column


class ExpressionUndefined(HitlError):
    """An expression that can't be evaluated on these values, such as a text compared with a number.

    Args:
        column: the column where its evaluation stopped, from 1.
    """

    title = "The expression can't be evaluated"

    def __init__(self, why: str, column: int = 1) -> None:
        super().__init__(f"{why}, at column {column}")
        self.column = column


def check_expression(text: str, channels: Sequence[ChannelInfo], facts: Collection[str] = ()) -> None:
    """Check that an expression can be read and names only public channels.

    Args:
        facts: other names that it may use; a channel with such a name has precedence.

    Raises:
        ExpressionInvalid: it can't, or doesn't.
    """
    visible = {channel.name: channel.visibility == "public" for channel in channels}
    visible |= dict.fromkeys(facts, True)
    for name, column in check_syntax(text):
        if name not in visible and name not in _CONSTANTS:
            hint = did_you_mean(name, visible)
            raise ExpressionInvalid(text, f"there is no channel {name!r}", column, hint)
        if not visible.get(name, True):
            why = f"the channel {name!r} is private"
            raise ExpressionInvalid(text, why, column, "an expression can't read it")


def state_names(text: str) -> set[str]:
    """Return the channels that an expression names as `state.NAME` or `state["NAME"]`."""
    names = set()
    for node in ast.walk(_parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id="state"), attr=name):
                names.add(name)
            case ast.Subscript(value=ast.Name(id="state"), slice=ast.Constant(value=str(name))):
                names.add(name)
    return names


def check_syntax(text: str) -> list[tuple[str, int]]:
    """Check that an expression can be read; returns the names it uses, each with its column.

    Raises:
        ExpressionInvalid: it can't.
    """
    tree = _parse(text)
    own = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    named: list[tuple[str, int]] = []
    for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "col_offset", len(text) * 4)):
        column = _column(text, getattr(node, "col_offset", 0))
        if isinstance(node, ast.BinOp) and not isinstance(node.op, _NODES):
            column = _operator_column(text, node.left)
            hint = _ELSEWHERE.get(text[column - 1], "")
            raise ExpressionInvalid(text, "this is more than an expression may do", column, hint)
        if not isinstance(node, _NODES):
            raise ExpressionInvalid(text, "this is more than an expression may do", column)
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
            raise ExpressionInvalid(text, "only plain functions can be called", column, _known())
        if not isinstance(node, ast.Name) or node.id in own:
            continue
        name = node.id
        if id(node) in called:
            if name not in _FUNCTIONS:
                raise ExpressionInvalid(text, f"there is not a function {name!r}", column, _known())
        else:
            named.append((name, column))
    return named


class Expression:
    """A checked expression, to be evaluated many times, by one thread at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parsed = _parse(text).body
        self._evaluator = _evaluator()

    @property
    def names(self) -> frozenset[str]:
        """The names it uses: channels, and words for values."""
        return frozenset(name for name, _ in check_syntax(self.text))

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return the result for these values, as plain JSON.

        Raises:
            ExpressionUndefined: the values don't define it.
        """
        return thaw(self._ask(values))

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the result for these values is true; other values count as true unless they are 0 or empty.

        Raises:
            ExpressionUndefined: the values don't define it.
        """
        return bool(self._ask(values))

    def _ask(self, values: Mapping[str, Any]) -> Any:
        evaluator = self._evaluator
        evaluator.names = ChainMap(values, _CONSTANTS)  # type: ignore[arg-type]  # nothing is written
        try:
            return evaluator.eval(self.text, self._parsed)
        except Exception as error:
            column = _failed_column(self.text, evaluator.asked[-1]) if evaluator.asked else 1
            raise ExpressionUndefined(_why(error), column) from error
        finally:
            evaluator.asked.clear()
            evaluator.names = {}


def _evaluator() -> Any:
    """Return an evaluator from simpleeval, imported at first use; `asked` are the parts being evaluated."""
    from simpleeval import DEFAULT_OPERATORS, EvalWithCompoundTypes

    class Evaluator(EvalWithCompoundTypes):  # type: ignore[misc]  # it has no types
        def __init__(self) -> None:
            operators = {kind: DEFAULT_OPERATORS[kind] for kind in _NODES if kind in DEFAULT_OPERATORS}
            super().__init__(operators={**operators, **_OPERATORS}, functions={})
            self.functions = dict(_FUNCTIONS)
            self.nodes[ast.Attribute] = lambda node: _part(self._eval(node.value), node.attr)
            self.nodes[ast.Subscript] = lambda node: _item(self._eval(node.value), self._eval(node.slice))
            self.asked: list[ast.AST] = []

        def _eval(self, node: ast.AST) -> Any:
            self.asked.append(node)
            value = super()._eval(node)
            # Errors are kept there, the innermost last.
            self.asked.pop()
            return value

    return Evaluator()


def _parse(text: str) -> ast.Expression:
    if len(text) > LONGEST:
        raise ExpressionInvalid(text[:40] + "…", f"it is longer than {LONGEST} characters")
    if not text.isprintable():
        raise ExpressionInvalid("", "it has characters that can't be seen, or more than one line")
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError as error:
        column = min(error.offset or len(text) + 1, len(text) + 1)
        hint = _ELSEWHERE.get(text[column - 1 : column], "")
        raise ExpressionInvalid(text, error.msg, column, hint) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise ExpressionInvalid(text, str(error) or "it is nested too deeply") from None


def _column(text: str, offset: int) -> int:
    """Return the column, from 1, of a position that Python gives in bytes."""
    return len(text.encode()[:offset].decode(errors="ignore")) + 1


def _operator_column(text: str, left: ast.expr) -> int:
    """Return the column of the operator after an operand."""
    column = _column(text, left.end_col_offset or 0)
    while text[column - 1] in " )":
        column += 1
    return column


def _failed_column(text: str, node: ast.AST) -> int:
    """Return the column where evaluation failed: at the operator, or at the name of an item or part."""
    match node:
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            return _operator_column(text, value)
        case ast.Compare(left=left) | ast.BinOp(left=left):
            return _operator_column(text, left)
    return _column(text, getattr(node, "col_offset", 0))


class _Undefined(Exception):
    """Says why these values give no result."""


def _why(error: Exception) -> str:
    if isinstance(error, _Undefined):
        return str(error)
    if isinstance(error, ZeroDivisionError):
        return "it divides by 0"
    return f"{type(error).__name__}: {error}"


def _part(value: Any, name: Any) -> Any:
    """Return an item of the value for `person.name`, never an attribute of Python's."""
    if not isinstance(value, Mapping):
        raise _Undefined(f"{in_words(value)} has no part {name!r}")
    if not isinstance(name, str) or name not in value:
        raise _Undefined(f"there is no part {name!r}")
    return value[name]


def _item(value: Any, key: Any) -> Any:
    """Return the item for `facts[-1]`, `facts[1:3]` or `person["name"]`."""
    if isinstance(value, Mapping):
        return _part(value, key)
    if not isinstance(value, Sequence):
        raise _Undefined(f"{in_words(value)} has no items")
    try:
        return value[key]
    except IndexError:
        raise _Undefined(f"there is no item {key} among {len(value)}") from None
    except TypeError:
        raise _Undefined(f"items go by number, not by {in_words(key)}") from None


def _compared(left: Any, right: Any, compare: Callable[[Any, Any], Any]) -> Any:
    try:
        return compare(left, right)
    except TypeError:
        raise _Undefined(f"{in_words(left)} can't be compared with {in_words(right)}") from None


def _remainder(left: Any, right: Any) -> Any:
    """Return the remainder of numbers: with a text, `%` could create one of any length."""
    if isinstance(left, str):
        raise _Undefined("% takes numbers")
    return left % right


_OPERATORS: Final[Mapping[type[ast.AST], Callable[[Any, Any], Any]]] = {
    ast.Lt: lambda left, right: _compared(left, right, operator.lt),
    ast.LtE: lambda left, right: _compared(left, right, operator.le),
    ast.Gt: lambda left, right: _compared(left, right, operator.gt),
    ast.GtE: lambda left, right: _compared(left, right, operator.ge),
    ast.Mod: _remainder,
}
"""The operators whose errors are explained."""


def _known() -> str:
    return f"functions: {', '.join(_FUNCTIONS)}"
