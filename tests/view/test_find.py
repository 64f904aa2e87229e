"""Finding a text in a thread as it is shown."""

from __future__ import annotations

import msgspec

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.find import MOST, find
from hitl_tui.view.run_view import open_view
from hitl_tui.view.step_view import head_step
from tests.support import tape as tapes


def places(query: str, **values: object) -> list[tuple[str, int, str, str]]:
    view = open_view(tapes.advisor_tape().end)
    view = msgspec.structs.replace(view, values={**view.values, **values})
    return [(one.kind, one.step, one.channel, one.match) for one in find(query, view, head_step(view))]


def test_names_values_and_steps_are_looked_through_capitals_aside() -> None:
    found = places("LUNCH box")
    assert ("value", 4, "latest_draft", "lunch box") in found
    found = places("advisor")
    assert ("channel", 4, "advisor_feedback", "advisor") in found
    assert ("step", 4, "", "advisor") in found
    assert ("step", 2, "", "advisor") in found


def test_steps_are_listed_newest_first_and_once_each() -> None:
    steps = [step for kind, step, _, _ in places("worker") if kind == "step"]
    assert steps == sorted(set(steps), reverse=True)


def test_a_line_says_which_one_it_is() -> None:
    view = open_view(tapes.advisor_tape().end)
    one = next(one for one in find("Picture a", view, head_step(view)) if one.channel == "latest_draft")
    assert view.values["latest_draft"].split("\n")[one.line].startswith("Picture a lunch box")
    assert one.where == f"latest_draft, line {one.line + 1}"


def test_private_values_and_empty_wishes_find_nothing() -> None:
    assert [one for one in places("private", latest_draft=PRIVATE) if one[0] == "value"] == []
    assert places("") == places("   ") == []


def test_what_is_found_is_harmless_and_bounded() -> None:
    view = open_view(tapes.advisor_tape().end)
    view = msgspec.structs.replace(
        view, values={**view.values, "latest_draft": "x\x1b[2Jy needle\u202e\n" * 3000}
    )
    found = find("needle", view, head_step(view))
    assert len(found) == MOST
    shown = "".join(one.where + one.before + one.match + one.after for one in found)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
