"""JSON that a person wrote: its value, or where it is wrong, in words."""

from __future__ import annotations

import json
from math import isinf
from typing import Any, NoReturn


class NotJson(ValueError):
    """The text is no JSON; the message says where and why."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text; bytes are UTF-8.

    Raises:
        NotJson: it has none, such as `line 1, column 7: expecting value`.
    """
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        # Python's words end in "at" where it puts the place behind them: here it stands before.
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        raise NotJson(f"line {error.lineno}, column {error.colno}: {what[:1].lower()}{what[1:]}") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is no UTF-8 text") from None
    except NotJson:
        raise
    except ValueError:  # what is left is the limit of Python on the digits of a number in a text
        raise NotJson("a number in it has too many digits") from None


def _no_constant(word: str) -> NoReturn:
    raise NotJson(f"{word} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise NotJson(f"{digits} is larger than any number here")
    return number
