"""Conditions of breakpoints: one expression over the public channels, read and told wrong before it is used.

`null`, `true` and `false` are spelt as in JSON, or as in Python.  What an expression may do is bounded:
comparisons, arithmetic, `in`, `and`/`or`/`not`, items and parts of values, comprehensions, a few functions;
no other names, no attributes of Python's, no powers or shifts.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.suggest import did_you_mean

LONGEST: Final = 500
_CONSTANTS: Final[Mapping[str, Any]] = {"null": None, "true": True, "false": False}
"""Words for values; a channel of such a name goes before its word."""
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


class ConditionInvalid(UsageError):
    """A condition that can't be read; the message shows it with a mark under the place.

    Args:
        why: what is wrong, in words.
        column: where, from 1.
    """

    title = "The condition can't be read"

    def __init__(self, condition: str, why: str, column: int = 1, hint: str = "") -> None:
        super().__init__(f"at column {column}: {why}\n  {condition}\n  {' ' * (column - 1)}^", hint)
        self.why = f"{why}; {hint}" if hint else why
        self.column = column


def check_condition(condition: str, channels: Sequence[ChannelInfo], facts: Collection[str] = ()) -> None:
    """See that a condition can be read and names public channels only.

    Args:
        facts: what else it may name; a channel of such a name stands behind.

    Raises:
        ConditionInvalid: it can't, or doesn't.
    """
    visible = {channel.name: channel.visibility == "public" for channel in channels}
    visible |= dict.fromkeys(facts, True)
    for name, column in check_syntax(condition):
        if name not in visible and name not in _CONSTANTS:
            hint = did_you_mean(name, visible)
            raise ConditionInvalid(condition, f"there is no channel {name!r}", column, hint)
        if not visible.get(name, True):
            why = f"the channel {name!r} is private"
            raise ConditionInvalid(condition, why, column, "a condition can't read it")


def check_syntax(condition: str) -> list[tuple[str, int]]:
    """See that a condition can be read; gives what it names from outside, each with its column.

    Raises:
        ConditionInvalid: it can't.
    """
    tree = _parse(condition)
    own = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    named: list[tuple[str, int]] = []
    for node in _in_order(tree):
        # Python counts bytes here.
        before = condition.encode()[: getattr(node, "col_offset", 0)]
        column = len(before.decode(errors="ignore")) + 1
        if not isinstance(node, _NODES):
            raise ConditionInvalid(condition, "this is more than a condition may do", column)
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
            raise ConditionInvalid(condition, "only plain functions can be called", column, _known())
        if not isinstance(node, ast.Name) or node.id in own:
            continue
        name = node.id
        if id(node) in called:
            if name not in _FUNCTIONS:
                raise ConditionInvalid(condition, f"there is no function {name!r}", column, _known())
        else:
            named.append((name, column))
    return named


class Condition:
    """A condition that was checked, to be asked again and again on one thread."""

    def __init__(self, condition: str) -> None:
        from simpleeval import DEFAULT_OPERATORS, EvalWithCompoundTypes

        operators = {kind: DEFAULT_OPERATORS[kind] for kind in _NODES if kind in DEFAULT_OPERATORS}
        evaluator: Any = EvalWithCompoundTypes(operators={**operators, ast.Mod: _remainder}, functions={})
        evaluator.functions = dict(_FUNCTIONS)
        evaluator.nodes[ast.Attribute] = lambda node: _part(evaluator._eval(node.value), node.attr)
        self._evaluator = evaluator
        self._text = condition
        self._parsed = _parse(condition).body

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is true of these values.

        Raises:
            HitlError: it can't be told, as of a text compared with a number.
        """
        self._evaluator.names = ChainMap(values, _CONSTANTS)  # type: ignore[arg-type]  # nothing is written
        try:
            return bool(self._evaluator.eval(self._text, self._parsed))
        except Exception as error:
            raise HitlError(f"{type(error).__name__}: {error}") from error
        finally:
            self._evaluator.names = {}


def _parse(condition: str) -> ast.Expression:
    if len(condition) > LONGEST:
        raise ConditionInvalid(condition[:40] + "…", f"it is longer than {LONGEST} characters")
    if not condition.isprintable():
        raise ConditionInvalid("", "it has characters that can't be seen, or more than one line")
    try:
        return ast.parse(condition, mode="eval")
    except SyntaxError as error:
        column = min(error.offset or len(condition) + 1, len(condition) + 1)
        hint = "write == to compare" if condition[column - 1 : column] == "=" else ""
        raise ConditionInvalid(condition, error.msg, column, hint) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise ConditionInvalid(condition, str(error) or "it is nested too deeply") from None


def _part(value: Any, name: str) -> Any:
    """`person.name` is an item of the value, never an attribute of Python's."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} has no part {name!r}")
    return value[name]


def _remainder(left: Any, right: Any) -> Any:
    """Of numbers: with a text, `%` could make one of any length."""
    if isinstance(left, str):
        raise TypeError("% takes numbers")
    return left % right


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, those that begin first in front."""
    return iter(sorted(ast.walk(tree), key=lambda node: getattr(node, "col_offset", -1)))


def _known() -> str:
    return f"functions: {', '.join(_FUNCTIONS)}"
