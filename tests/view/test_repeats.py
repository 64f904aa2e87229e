"""What would run again, in words."""

from __future__ import annotations

from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.view.repeats import repeat_lines, running_words, standing_words

NODES = (NodeRepeat("score", 2, ()), NodeRepeat("pay", 1, ("brings in the bank", "calls book")))


def test_a_re_run_lists_its_nodes_their_side_effects_and_last_usage() -> None:
    repeats = Repeats(
        4, 9, NODES, 1, ("score",), tokens_in=900, tokens_out=100, cost=0.02, duration=65_000_000
    )
    assert standing_words(repeats) == "score changed · steps 1–4 are kept"
    used = "$0.0200 · 1.0k tok · 1m 05s"
    assert running_words(repeats) == f"runs score ×2, pay · side effects: pay brings in the bank · {used}"
    assert repeat_lines(repeats) == [
        "Runs again: score ×2, pay.",
        "pay has side effects: brings in the bank, calls book.",
        "Last time: $0.0200, 1.0k tok, 1m 05s.",
        "1 human decision made later is not carried over.",
    ]
    assert repeat_lines(repeats, in_fork=True)[0] == "The fork will run: score ×2, pay."


def test_a_partly_unknown_cost_is_shown_as_a_minimum() -> None:
    repeats = Repeats(
        0, 2, NODES[:1], tokens_in=10, cost=0.5, cost_known=False, unknown="another Python\x1b[2J"
    )
    assert standing_words(repeats) == "no code that ran changed · only the input is kept"
    assert "≥ $0.50" in repeat_lines(repeats)[-2]
    assert "\x1b" not in repeat_lines(repeats)[-1]
    assert repeat_lines(repeats)[1] == "None of these nodes is known to have side effects."
