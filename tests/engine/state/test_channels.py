"""Names, fields, defaults and warnings of channels."""

from __future__ import annotations

import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hitl_tui import Channel, GraphInvalid, NodeFailed, declared
from hitl_tui.engine.state import reducers
from hitl_tui.engine.state.canonical import channel_hash
from hitl_tui.engine.state.channel import bind
from tests.engine.building import bound, one_node, returning
from tests.support.spec import spec

pytestmark = spec("3")


class TestName:
    @pytest.mark.parametrize("name", ["a", "Z", "messages", "a1", "with_underscore", "with-dash", "x" * 64])
    def test_a_letter_then_letters_digits_underscores_or_dashes(self, name: str) -> None:
        assert one_node({name: Channel(1)}, returning({name: 2})).invoke()[name] == 2

    @pytest.mark.parametrize(
        "name", ["", "1a", "_a", "-a", "a b", "a.b", "é", "naïve", "x" * 65, "a\n", "a:b", "*"]
    )
    def test_anything_else_is_refused(self, name: str) -> None:
        with pytest.raises(GraphInvalid, match="channel name"):
            one_node({name: Channel(1)}, returning(None))

    @pytest.mark.parametrize("name", ["goal", "constraints"])
    def test_the_inputs_of_a_run_are_no_channels(self, name: str) -> None:
        with pytest.raises(GraphInvalid, match=f"'{name}' is a read-only input"):
            one_node({name: Channel(1)}, returning(None))


class TestGoalAndConstraints:
    def test_are_visible_to_every_node_whatever_it_reads(self) -> None:
        def node(state: Any, config: Any) -> dict[str, Any]:
            return {"c": [state["goal"], state.get("constraints")]}

        runner = one_node({"c": Channel(None)}, node, reads=[])
        assert runner.invoke({"goal": "win", "constraints": {"max": 3}})["c"] == ["win", {"max": 3}]

    def test_are_null_where_none_was_given(self) -> None:
        node = lambda state, config: {"c": [state["goal"], state["constraints"]]}  # noqa: E731
        assert one_node({"c": Channel(1)}, node).invoke()["c"] == [None, None]

    @pytest.mark.parametrize("name", ["goal", "constraints"])
    def test_no_node_can_write_them(self, name: str) -> None:
        with pytest.raises(NodeFailed, match=f"'{name}' is an input of the run, which is read-only"):
            one_node({"c": Channel(1)}, returning({name: "other"})).invoke({name: "mine"})

    def test_cannot_be_changed_through_what_a_node_reads(self) -> None:
        def node(state: Any, config: Any) -> None:
            state["constraints"].append(1)

        with pytest.raises(NodeFailed, match="read-only"):
            one_node({"c": Channel(1)}, node).invoke({"constraints": []})


DEFAULTS = {
    "overwrite": None,
    "last": None,
    "append": [],
    "last_n(3)": [],
    "extend": [],
    "set_union": [],
    "merge": {},
    "merge_deep": {},
    "sum": 0,
    "min": 0,
    "max": 0,
    'by_type({"note":"append"})': None,
}


@pytest.mark.filterwarnings("ignore:channel 'c'. m")
@pytest.mark.parametrize(("reducer", "default"), DEFAULTS.items(), ids=DEFAULTS)
def test_default_where_none_is_given(reducer: str, default: Any) -> None:
    channel = bound(Channel(reducer=reducer))
    assert channel.default == default
    assert type(channel.default).__base__ is type(default) or channel.default is default or default == 0
    assert channel.default_hash == channel_hash(default)


@pytest.mark.parametrize("reducer", [name for name in DEFAULTS if name != "overwrite"])
def test_an_explicit_null_is_the_default(reducer: str) -> None:
    assert bound(Channel(None, reducer=reducer)).default is None


def test_initial_is_another_name_for_default() -> None:
    assert bound(Channel(initial=[1], reducer="append")).default == [1]


def test_default_and_initial_together_are_refused() -> None:
    with pytest.raises(GraphInvalid, match="`default` or `initial`, not both"):
        Channel(1, initial=1)


class TestWithoutReducer:
    @spec("14")
    @pytest.mark.parametrize("default", [[], ["a"], ()], ids=repr)
    def test_a_list_default_gets_last_n_20_with_a_warning_about_nesting(self, default: Any) -> None:
        with pytest.warns(UserWarning, match="'c'") as caught:
            channel = bound(Channel(default))
        assert channel.reducer.text == "last_n(20)"
        message = str(caught[0].message)
        assert "last_n(20)" in message
        assert "nested" in message
        assert all(f"'{name}'" in message for name in ("overwrite", "append", "extend"))

    def test_the_trap_is_as_the_warning_says(self) -> None:
        with pytest.warns(UserWarning, match="nested"):
            runner = one_node({"c": Channel(["a"])}, returning({"c": ["b"]}))
        assert runner.invoke()["c"] == ["a", ["b"]]

    @pytest.mark.parametrize("default", [None, "", "x", 0, 1.5, True, {}, {"a": [1]}], ids=repr)
    def test_anything_else_gets_overwrite_without_a_warning(self, default: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert bound(Channel(default)).reducer.text == "overwrite"

    def test_neither_does_no_default_at_all(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            channel = bound(Channel())
        assert (channel.reducer.text, channel.default) == ("overwrite", None)

    def test_the_warning_points_at_the_line_that_declares_the_channel(self) -> None:
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        channel = Channel([])
        with pytest.warns(UserWarning, match="last_n") as caught:
            one_node({"c": channel}, returning(None))
        assert (caught[0].filename, caught[0].lineno) == (__file__, line)

    def test_the_warning_points_at_no_library_where_a_thread_compiles_without_code_of_the_user(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            channel = pool.submit(Channel, []).result()
            with pytest.warns(UserWarning, match="last_n") as caught:
                pool.submit(bind, {"c": channel}).result()
        assert caught[0].filename == declared.__file__


class TestMinAndMax:
    @pytest.mark.parametrize("reducer", ["min", "max"])
    def test_without_a_default_start_from_0_with_a_warning(self, reducer: str) -> None:
        with pytest.warns(UserWarning, match=rf"'c': {reducer} starts from 0.*default=None"):
            assert bound(Channel(reducer=reducer)).default == 0

    @pytest.mark.parametrize("reducer", ["min", "max"])
    @pytest.mark.parametrize("default", [None, 0, 7])
    def test_with_a_default_do_not_warn(self, reducer: str, default: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert bound(Channel(default, reducer=reducer)).default == default

    @pytest.mark.parametrize(("reducer", "update"), [("min", 5), ("max", -5)])
    def test_from_null_the_first_update_wins(self, reducer: str, update: int) -> None:
        runner = one_node({"c": Channel(None, reducer=reducer)}, returning({"c": update}))
        assert runner.invoke()["c"] == update


def test_sum_without_a_default_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bound(Channel(reducer="sum")).default == 0


class TestVisibility:
    def test_is_public_by_default(self) -> None:
        assert bound(Channel(1)).visibility == "public"

    def test_is_public_or_private(self) -> None:
        assert bound(Channel(1, visibility="private")).visibility == "private"

    def test_nothing_else(self) -> None:
        with pytest.raises(GraphInvalid, match=r"'secret'.*'public' or 'private'"):
            Channel(1, visibility="secret")  # type: ignore[arg-type]


class TestInfo:
    def test_a_channel_as_data(self) -> None:
        info = bound(Channel("", schema=str, description="the draft", reducer="overwrite"), "draft").info
        assert (info.name, info.type, info.reducer) == ("draft", "text", "overwrite")
        assert (info.visibility, info.description, info.schema) == ("public", "the draft", {"type": "string"})

    @pytest.mark.parametrize(
        ("default", "word"),
        [(True, "yes/no"), ("a", "text"), (1, "number"), (1.5, "number"), ({}, "dict"), (None, "")],
        ids=repr,
    )
    def test_without_a_schema_the_default_gives_the_type(self, default: Any, word: str) -> None:
        assert bound(Channel(default)).info.type == word


def test_an_invalid_channel_is_refused_with_a_hint() -> None:
    with pytest.raises(GraphInvalid) as caught:
        one_node({"c": []}, returning(None))  # type: ignore[dict-item]
    assert "'c' is a list" in caught.value.message
    assert caught.value.hint == "write Channel([])"


def test_a_default_that_does_not_fit_its_schema_is_refused_when_built() -> None:
    with pytest.raises(GraphInvalid, match=r"channel 'c': .* as its default"):
        one_node({"c": Channel("", schema={"type": "integer"})}, returning(None))


def test_channels_that_are_no_dict_are_refused() -> None:
    with pytest.raises(GraphInvalid, match="the channels are a list"):
        one_node(["c"], returning(None))  # type: ignore[arg-type]


def test_a_reducer_object_is_taken_as_its_text_is() -> None:
    assert bound(Channel(reducer=reducers.last_n(2))).reducer == bound(Channel(reducer="last_n(2)")).reducer
