"""`find`, `when` and `values`: what the log of a thread is asked, in lines and as documents."""

from __future__ import annotations

from tests.cli.conftest import App


def test_a_text_is_found_with_step_node_and_place(review: App) -> None:
    document = review.expect(0, "find", "r", "hills", "--json").document
    newest = document["hits"][0]
    assert newest["kind"] == "update"
    assert newest["match"] == "Hills"
    lines = review.expect(0, "find", "r", "hILLS").out.splitlines()
    assert lines[0].split() == ["step", "node", "what"]
    assert lines[1].split()[0] == str(newest["step"])
    assert review.expect(1, "find", "r", "stands nowhere").out == ""


def test_a_condition_is_reported_with_the_step_where_it_became_true(review: App) -> None:
    document = review.expect(0, "when", "r", "len(draft) > 0", "--json").document
    assert [moment["step"] for moment in document["moments"]] == [1]
    assert document["moments"][0]["before"] == {"draft": ""}
    first = review.expect(0, "when", "r", "len(draft) > 0", "--first")
    assert "first at step 1" in first.err
    assert review.expect(1, "when", "r", "draft == null").out == ""


def test_a_diff_of_two_forks_has_their_first_difference(review: App) -> None:
    review.expect(0, "fork", "r@1", "b", "draft=Valleys")
    document = review.expect(0, "diff", "r", "b", "--json").document
    difference = document["first_difference"]
    assert difference["step"] == 2
    assert [row["channel"] for row in difference["channels"] if row["change"] == "changed"] == ["draft"]
    assert "First difference at step 2, by " in review.expect(0, "diff", "r", "b").out
    assert review.expect(0, "diff", "r@0", "r", "--json").document["first_difference"] is None
    review.expect(0, "fork", "r@1", "same")
    assert review.expect(0, "diff", "r@1", "same", "--json").document["first_difference"] is None


def test_an_invalid_condition_is_reported_with_its_column(review: App) -> None:
    refused = review.expect(2, "when", "r", "draft = 'x'")
    assert "\n  draft = 'x'\n        ^" in refused.err
    assert "write == to compare" in refused.err
    assert "there is no channel" in review.expect(2, "values", "r", "drafts").err


def test_values_over_the_run_are_strips_and_samples(review: App) -> None:
    (row,) = review.expect(0, "values", "r", "len(draft)").out.splitlines()
    assert row.startswith("len(draft)")
    assert row.split()[-1][0] == "▁"
    (series,) = review.expect(0, "values", "r", "draft", "--json").document["series"]
    assert [sample["step"] for sample in series["samples"]] == [0, 1, 2]
    assert series["samples"][0]["value"] == ""
