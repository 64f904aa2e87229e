"""Channel rows, the reducer lens and the review card."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hitl_tui.engine.audit.costs import CostReport
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.view.card import Version, review_card
from hitl_tui.view.costs import cost_lines
from hitl_tui.view.lens import lens
from hitl_tui.view.run_view import RunView, fold, open_view
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, plain_text
from hitl_tui.view.status import status
from hitl_tui.view.step_view import head_step, past_step
from hitl_tui.view.transcript import step_lines
from tests.support import tape as tapes


def played(tape: tapes.Tape) -> RunView:
    return fold(open_view(tape.begin), tape.events)


def update(before: Any, given: Any, after: Any, reducer: str = "overwrite", **more: Any) -> AppliedUpdate:
    fields: dict[str, Any] = {
        "channel": "c",
        "op": "reduce",
        "reducer": reducer,
        "visibility": "public",
        "source": "node",
        "before": before,
        "update": given,
        "after": after,
        "changed": before != after,
    }
    return AppliedUpdate(**{**fields, **more})


SENTENCE = "The quick brown fox jumps over the lazy dog. "


def words(lines: tuple[Line, ...]) -> list[str]:
    return [plain_text(line) for line in lines]


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        pytest.param(
            update([1], "x", [1, "x"], "append"), ["c  append", "  list 1 + “x”", "  → list 2"], id="append"
        ),
        pytest.param(
            update([1, 2], 3, [2, 3], "last_n(2)"),
            ["c  last_n(2)", "  list 2 + 3", "  → list 2  oldest 1 dropped"],
            id="last_n tells what was dropped",
        ),
        pytest.param(
            update([1], [], [1], "extend"),
            ["c  extend", "  list 1 + list 0", "  → list 1  same value"],
            id="extend by nothing",
        ),
        pytest.param(update(2, 3, 5, "sum"), ["c  sum", "  2 + 3 → 5"], id="sum"),
        pytest.param(
            update(2, 3, 2, "min"), ["c  min", "  min(2, 3) → 2  same value"], id="min keeps the smaller"
        ),
        pytest.param(
            update({"a": 1}, {"b": 1}, {"a": 1, "b": 1}, "merge"),
            ["c  merge", "  1 key + {b: 1}", "  → 2 keys"],
            id="merge",
        ),
        pytest.param(
            update({"a": 1, "b": 2.25}, {"b": None}, {"a": 1, "b": None}, "merge"),
            ["c  merge", "  2 keys + {b: null}", "  b: 2.25 → null", "  → 2 keys"],
            id="merge shows what it replaces",
        ),
        pytest.param(
            update({"id": 4, "price": 2.25}, {}, {"id": 4, "price": None}),
            ["c  overwrite", "  price: 2.25 → null"],
            id="an object shows the member that changed",
        ),
        pytest.param(
            update(
                [{"id": n, "price": n} for n in range(3)],
                [],
                [{"id": 0, "price": 0}, {"id": 2, "price": None}, {"id": 3}],
            ),
            [
                "c  overwrite",
                "  [1].id: 1 → 2",
                "  [1].price: 1 → null",
                "  [2].id: 2 → 3",
                "  [2].price: - 2",
            ],
            id="a list shows the members of the items that changed",
        ),
        pytest.param(
            update([1, 2, 3, 4], [], [1, 9, 2, 3, 4]),
            ["c  overwrite", "  [1]: + 9"],
            id="an item that was put in is no change of those after it",
        ),
        pytest.param(
            update([0] * 50, [], [1] * 50),
            ["c  overwrite", *(f"  [{at}]: 0 → 1" for at in range(8)), "  … more differences"],
            id="of many differences the first are shown",
        ),
        pytest.param(
            update("revise", "revise", "revise"),
            ["c  overwrite", "  “revise” → “revise”  same value"],
            id="the same value again",
        ),
        pytest.param(update("", "no", "no"), ["c  overwrite", "  “” → “no”"], id="short texts on one line"),
        pytest.param(
            update("Too abstract, says ann.", "b", "b"),
            ["c  overwrite", "  “Too abstract, says ann.”", "  → “b”"],
            id="longer texts on two lines",
        ),
        pytest.param(
            update("a\n" * 100, "", "a\n" * 99 + "b\n"),
            ["c  overwrite", "  text 200 → 200, 2 lines changed", "  … " + "a⏎" * 15 + "[-a-]{+b+}"],
            id="long texts as sizes and change",
        ),
        pytest.param(
            update(SENTENCE, "", SENTENCE.replace("brown", "red")),
            [
                "c  overwrite",
                "  “The quick brown fox jumps over the lazy dog. ”",
                "  → “The quick red fox jumps over the lazy dog. ”",
            ],
            id="a text of a line is told whole, before and after",
        ),
        pytest.param(
            update(5 * SENTENCE, "", SENTENCE.replace("brown", "red") + 4 * SENTENCE),
            [
                "c  overwrite",
                "  text 225 → 223, 2 lines changed",
                "  The quick [-brown-] {+red+} fox jumps over the lazy dog. …",
            ],
            id="a long text that changed a little shows what is near",
        ),
        pytest.param(
            update("a", "b", "b", op="set", source="human", actor="ann", note="better"),
            ["c  set by ann", "  “a” → “b”", "  note  better"],
            id="a person sets without a reducer",
        ),
        pytest.param(
            update("a", "b", "b", op="set", source="node"),
            ["c  replaced", "  “a” → “b”"],
            id="a node that goes past its reducer is no person",
        ),
        pytest.param(
            update(PRIVATE, PRIVATE, PRIVATE, "append", visibility="private", changed=True),
            ["c  append", "  [private]"],
            id="private",
        ),
        pytest.param(
            update(1, 2, 7, "mod:fn"), ["c  mod:fn", "  old 1", "  update 2", "  → 7"], id="a custom reducer"
        ),
        pytest.param(
            update("a", "b\x1b", "b\x1b"), ["c  overwrite", "  “a” → “b␛”"], id="an escape code is shown"
        ),
        pytest.param(
            update(None, [1], [1], "extend"),
            ["c  extend", "  null + list 1", "  → list 1"],
            id="from null",
        ),
    ],
)
def test_the_lens_shows(one: AppliedUpdate, shown: list[str]) -> None:
    assert words(lens([one])) == shown


def test_a_private_update_shows_nothing_of_it_even_if_values_came_along() -> None:
    leaked = update("secret", "secret2", "secret2", visibility="private")
    assert "secret" not in "".join(words(lens([leaked])))


def test_channel_rows_of_the_head() -> None:
    rows = {row.name: row for row in head_step(played(tapes.advisor_tape())).rows}
    marks = [(row.mark, row.word) for row in rows.values()]
    assert marks == [
        ("+", "grew"),
        (" ", "untouched"),
        ("≠", "changed"),
        ("=", "written, same value"),
        (" ", "untouched"),
    ]
    assert rows["latest_draft"].preview.startswith("text 316 “A closure")
    assert rows["messages"].kind == "list"
    assert rows["messages"].preview.startswith("list 5  “revise: Use")


def test_rows_of_a_past_step_and_of_an_edit() -> None:
    tape = tapes.advisor_tape()
    view = played(tape)
    past = past_step(view, view.checkpoints[1], tape.states[1], tape.updates[1])
    assert not past.is_head
    assert past.step == 1
    by_ann = update("a", "b", "b", op="set", source="human", actor="ann")
    edited = past_step(view, view.checkpoints[2], {"c": "b"}, [by_ann])
    row = edited.rows[-1]
    assert (row.name, row.mark, row.word) == ("c", "✎", "set by hand")


def test_the_reason_for_a_route_is_shown_with_the_step_and_on_the_card() -> None:
    view = played(tapes.advisor_tape())
    request = view.progress.pending[0]
    why = msgspec.structs.replace(view.checkpoints[-1], text="route: 'writer'\x1b (named at character 14)")
    view = replace(view, checkpoints=(*view.checkpoints[:-1], why))
    assert head_step(view).why == "route: 'writer'␛ (named at character 14)"
    assert "route: 'writer'␛ (named at character 14)" in words(review_card(request, view, view.values).why)[0]
    assert step_lines(why, ())[1:] == [
        "It says:",
        "  | route: 'writer'␛ (named at character 14)",
        "No change.",
    ]


@pytest.mark.parametrize("tape", [tapes.hostile_tape(), tapes.private_tape()], ids=["hostile", "private"])
def test_nothing_on_a_pane_steers_the_terminal(tape: tapes.Tape) -> None:
    view = played(tape)
    step = head_step(view)
    card = review_card(view.progress.pending[0], view, view.values, version=Version(3, "w\x1b", ""))
    shown = [
        *words(step.lens),
        *(row.preview + row.name for row in step.rows),
        *words((*card.words, *card.about, card.facts)),
        card.title,
        status(view, tapes.T0).turn,
    ]
    assert all(sanitise(text, multiline=False) == text for text in shown)


def test_the_review_card_of_a_verdict() -> None:
    view = played(tapes.advisor_tape())
    request = view.progress.pending[0]
    card = review_card(
        request,
        view,
        view.values,
        version=Version(3, "worker", tapes.DRAFT_2),
        previous=Version(1, "worker", tapes.DRAFT_1),
    )
    assert (card.title, card.badge) == ("Approve this draft?", "advisor: REVISE")
    assert plain_text(card.facts) == "round 2 of 3 · opus · 303 tok · 1.9 s"
    assert words(card.words) == tapes.FEEDBACK_2.split("\n")
    assert words(card.about) == [
        "latest_draft of step 3 by worker, 316 characters",
        "2 lines removed, 3 added since step 1",
    ]
    head = view.head
    assert head is not None
    assert card.seen == head.state_hash
    assert card.bound == f"about step 4 · {head.state_hash.hex()[:8]}"
    assert [choice.key for choice in card.choices if choice.recommended] == ["enter"]


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        pytest.param(None, [], id="nothing"),
        pytest.param("Really?\nYes?", ["Really?", "Yes?"], id="a text"),
        pytest.param({"n": [1]}, ["{", '  "n": [', "    1", "  ]", "}"], id="any JSON"),
        pytest.param({"verdict": 7}, ["{", '  "verdict": 7', "}"], id="a verdict that is none"),
        pytest.param(
            {"verdict": "approved", "feedback": "", "round": None, "sources": 2},
            ["{", '  "sources": 2', "}"],
            id="what comes beside a verdict",
        ),
    ],
)
def test_a_request_of_any_payload_is_drawn(payload: Any, shown: list[str]) -> None:
    view = played(tapes.advisor_tape())
    card = review_card(tapes.verdict_request(payload=payload), view, {})
    assert words(card.words) == shown
    assert card.title


def test_a_private_subject_stays_private() -> None:
    view = played(tapes.advisor_tape(private=["latest_draft"]))
    card = review_card(
        view.progress.pending[0], view, view.values, previous=Version(1, "worker", tapes.DRAFT_1)
    )
    assert words(card.about) == ["latest_draft, [private]"]


def test_what_a_thread_has_cost() -> None:
    view = played(tapes.advisor_tape())
    lost = (ModelUse("advisor", "x", "no\x1bprice", 10, 5, None),)
    lines = words(cost_lines(CostReport(view.checkpoints, lost)))
    assert any("no␛price" in line and line.endswith("unknown") for line in lines)
    assert any(line.split()[:1] == ["all"] and "≥ $" in line for line in lines)
    assert any("attempts without a step" in line for line in lines)
    by_node = lines[lines.index("By node") + 1 :]
    assert by_node[0].split()[:3] == ["node", "runs", "time"]
    assert by_node[1].split()[2:4] == ["4.6", "s"]
    assert words(cost_lines(CostReport(()))) == ["no node has run yet"]


@pytest.mark.parametrize(
    ("decision", "note", "updates", "shown"),
    [
        pytest.param("accept", None, (), ["accept by ann"], id="alone"),
        pytest.param("accept", "reads well", (), ["accept by ann", "  note  reads well"], id="with_a_note"),
        pytest.param(
            "approve",
            None,
            (update("revise", "approved", "approved", op="set", source="human", actor="ann"),),
            ["c  set by ann", "  “revise” → “approved”"],
            id="a_channel_that_was_set_says_it",
        ),
    ],
)
def test_a_step_that_is_a_decision_says_who_decided_what_and_why(
    decision: str, note: str | None, updates: tuple[AppliedUpdate, ...], shown: list[str]
) -> None:
    view = played(tapes.advisor_tape())
    assert view.head is not None
    made = msgspec.structs.replace(view.head, source="human", actor="ann", decision=decision, note=note)
    assert words(past_step(view, made, {}, updates).lens) == shown
