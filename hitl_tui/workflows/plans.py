"""Plans of the planner workflow: from the planner's lines to steps, each a worker and an instruction."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from hitl_tui.errors import HitlError

Step = dict[str, str]
ParsePlan = Callable[[str], Iterable[Mapping[str, str]]]

# "1." "2)" "(3)", and "-" "*" "+" "•" "–" with a blank after it.
_MARK = re.compile(r"\s*(?:\(?\d+[.)]\s*|[-*+•–]\s+)*")
_QUOTED = 120


def parse_lines(text: str, workers: Sequence[str]) -> list[Step]:
    """The steps of a plan with one `worker: instruction` a line.

    Blank lines are skipped, list numbers and bullets tolerated; the first colon splits.  A worker is
    found in any case.

    Raises:
        HitlError: quotes the first line that does not parse, with its number.
    """
    known = {name.casefold(): name for name in workers}
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        body = line[_MARK.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing too
        worker, colon, instruction = body.partition(":")
        where = f"line {number} of the plan, {_quote(line)}"
        if not colon or not instruction.strip():
            lacks = "has no instruction" if colon else "has no colon"
            raise _broken(f"{where}, {lacks}", "write each step as `worker: instruction`")
        if worker.strip().casefold() not in known:
            raise _broken(f"{where}: there is no worker {_quote(worker)}", _known(workers))
        steps.append({"worker": known[worker.strip().casefold()], "instruction": instruction.strip()})
    return steps


def read_plan(
    plan: Any, workers: Sequence[str], max_steps: int, parse: ParsePlan | None = None
) -> list[Step]:
    """The steps of a plan as it stands in its channel: a text to parse, or the steps.

    Raises:
        HitlError: a step that is none, an unknown worker, no step at all, or more than `max_steps`.
    """
    if isinstance(plan, str) and parse is None:
        steps = parse_lines(plan, workers)
    else:
        steps = _check_steps(_parsed(plan, parse) if isinstance(plan, str) and parse else plan, workers)
    if not steps:
        raise _broken("the plan has no step", "write each step as `worker: instruction`")
    if len(steps) > max_steps:
        raise _broken(
            f"the plan has {len(steps)} steps, max_steps is {max_steps}", "join steps, or leave some out"
        )
    return steps


def plan_text(plan: Any) -> str:
    """A plan for people, one step a line; a text as it is."""
    if not isinstance(plan, list):
        return str(plan or "")
    lines = [
        f"{number}. {step.get('worker')}: {step.get('instruction')}"
        if isinstance(step, Mapping)
        else str(step)
        for number, step in enumerate(plan, 1)
    ]
    return "\n".join(lines)


def _parsed(text: str, parse: ParsePlan) -> list[Any]:
    try:
        return list(parse(text))
    except HitlError as error:
        raise _broken(error.message, error.hint) from error
    except Exception as error:
        name = getattr(parse, "__name__", "parse_plan")
        raise _broken(
            f"{name} can't read the plan {_quote(text)}: {type(error).__name__}: {error}",
            "mend the plan, or make it again",
        ) from error


def _check_steps(steps: Any, workers: Container[str]) -> list[Step]:
    for number, step in enumerate(steps if isinstance(steps, list) else [steps], 1):
        worker = step.get("worker") if isinstance(step, Mapping) else None
        instruction = step.get("instruction") if isinstance(step, Mapping) else None
        if not isinstance(worker, str) or not isinstance(instruction, str):
            raise _broken(
                f"step {number} of the plan, {_quote(step)}, is no step",
                'write each as {"worker": "…", "instruction": "…"}',
            )
        if worker not in workers:
            raise _broken(
                f"step {number} of the plan, {_quote(step)}: there is no worker {worker!r}", _known(workers)
            )
    return [{"worker": step["worker"], "instruction": step["instruction"]} for step in steps]


def _broken(message: str, hint: str) -> HitlError:
    return HitlError(message, hint, channel="plan")


def _known(workers: Any) -> str:
    return f"workers: {', '.join(workers)}"


def _quote(part: Any) -> str:
    text = part.strip() if isinstance(part, str) else str(part)
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")
