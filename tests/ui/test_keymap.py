"""Keys by id: what may be written, what clashes, what would never work, and that the rest applies."""

from __future__ import annotations

import string
import subprocess
import sys

import pytest
from textual.binding import Binding

from hitl_tui.verbs.actions import ALL_ACTIONS, ALL_BY_ID
from hitl_tui.verbs.keymap import load_keymap, places_of
from hitl_tui.view.keys import NoKey, parse_key, types_text, written

PANES_FIRST = {("list.first", "home"), ("list.last", "end")}
"""What the run screen does with the key where no pane scrolls."""


def problems(**table: object) -> list[str]:
    return list(load_keymap({name.replace("_", "."): keys for name, keys in table.items()}).problems)


def test_the_defaults_have_no_problems():
    keymap = load_keymap({})
    assert keymap.problems == ()
    assert keymap.configured == frozenset()
    assert set(keymap.bindings) == set(ALL_BY_ID)
    assert load_keymap({action.id: action.keys for action in ALL_ACTIONS}).configured == frozenset()


def test_configured_keys_apply_and_are_shown():
    keymap = load_keymap({"run.step": "Z, f5", "run.continue": "s", "app.palette": "ctrl+o", "app.quit": ""})
    assert keymap.problems == ()
    assert keymap.bindings["run.step"] == ("Z", "f5")
    assert (keymap.all_shown("run.step"), keymap.shown("app.palette")) == ("Z F5", "^o")
    assert keymap.configured == {"run.step", "run.continue", "app.palette", "app.quit"}


@pytest.mark.parametrize(
    "keys", [*(action.keys for action in ALL_ACTIONS), "+, comma", "ctrl+plus, alt+comma"]
)
def test_keys_are_listed_as_the_settings_write_them(keys: str):
    listed = ",".join(load_keymap({"run.step": keys}).spelled("run.step"))
    again = load_keymap({"run.step": listed})
    assert again.bindings["run.step"] == load_keymap({"run.step": keys}).bindings["run.step"]


def test_an_action_without_a_key_is_reached_through_the_palette():
    keymap = load_keymap({"change.extend": ""})
    assert (keymap.shown("change.extend"), keymap.key_hint("change.extend")) == ("", "^p Raise limit")


def test_two_actions_can_swap_their_keys():
    keymap = load_keymap({"run.step": "c", "run.continue": "s"})
    assert keymap.problems == ()
    assert (keymap.bindings["run.step"], keymap.bindings["run.continue"]) == (("c",), ("s",))


def test_the_card_has_its_own_keys():
    assert problems(card_undo="s", card_edit="p") == []
    assert problems(card_undo="/") == [
        'keys.card.undo: card.undo: / is the key of card.reason already; give that one another key too, or ""'
        " for none"
    ]


def test_the_key_that_opens_the_threads_also_closes_them():
    assert "t is the key of app.threads already" in problems(threads_search="t")[0]


def test_a_key_that_was_given_away_is_free():
    assert problems(list_down="Z", run_step="j", look_enter="o", look_reveal="!", run_continue="enter") == []


def test_a_key_is_written_as_it_is_shown():
    keymap = load_keymap({"list.up": "↑,u", "edit.back": "esc,f6"})
    assert keymap.problems == ()
    assert (keymap.bindings["list.up"], keymap.bindings["edit.back"]) == (("up", "u"), ("escape", "f6"))


def test_each_screen_has_its_own_keys_which_can_be_swapped():
    assert problems(threads_search="s", edit_apply="f5", run_step="f3", look_json="ctrl+y") == []
    assert problems(edit_apply="f4", edit_editor="ctrl+s", threads_search="q", threads_close="/") == []


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"run_stp": "n"}, "keys.run.stp: there is no action 'run.stp'; did you mean 'run.step'?"),
        ({"run_step": "excape"}, "there is no key 'excape'; did you mean 'escape'?"),
        ({"run_step": "crtl+n"}, "there is no key 'crtl+n'; did you mean 'ctrl'?"),
        ({"run_step": 3}, 'must be text, as in "s", not a whole number'),
        ({"run_step": ["n"]}, 'must be text, as in "s", not a list'),
        ({"run_step": "ctrl+i"}, "'ctrl+i' is the same as tab to a terminal"),
        ({"run_step": "f7,,"}, 'write "comma" for the key , itself'),
        ({"run_step": "ctrl+q"}, "^q always leaves the app"),
        ({"run_step": "j"}, "j is the key of list.down already; give that one another key too"),
        ({"run_step": "enter"}, "enter is the key of look.enter already; give that one another key too"),
        ({"run_step": "up"}, "↑ is needed to move around"),
        ({"run_step": "tab"}, "tab is needed to move around"),
        ({"run_step": "c"}, "c is the key of run.continue already; give that one another key too"),
        ({"run_step": "f7", "run_pause": "f7"}, "F7 is the key of run.step (keys.run.step) already"),
        ({"app_palette": "a"}, "a is needed in text fields"),
        ({"app_palette": "ä"}, "ä is needed in text fields"),
        ({"app_palette": "ctrl+a"}, "^a is needed in text fields"),
        ({"app_palette": ""}, "needs a key"),
        ({"edit_apply": "a"}, "a is needed in text fields"),
        ({"edit_apply": "ctrl+z"}, "^z is needed in text fields"),
        ({"edit_apply": "f4"}, "F4 is the key of edit.editor already"),
        ({"edit_apply": ""}, "needs a key, because the palette does not list it"),
        ({"edit_aply": "f5"}, "did you mean 'edit.apply'?"),
        ({"threads_open": "j"}, "j is the key of list.down already"),
        ({"list_down": "s"}, "s is the key of run.step already"),
        ({"list_up": "x"}, "x is the key of run.cancel already"),
        ({"ask_take": "g"}, "g is needed in text fields"),
        ({"form_next": "n"}, "n is needed in text fields"),
        ({"find_go": "ctrl+a"}, "^a is needed in text fields"),
        ({"breaks_back": "x"}, "x is needed in text fields"),
        ({"compare_swap": "="}, "= is the key of look.compare already"),
        ({"look_check": "1"}, "1 is the key of look.text already"),
        ({"look_costs": "f3", "page_close": "f3"}, "F3 is the key of look.costs (keys.look.costs) already"),
        ({"agents_forget": "A"}, "A is the key of look.agents already"),
        ({"branches_next": "q"}, "q is the key of page.close already"),
        ({"check_go": "1"}, "1 is the key of check.log already"),
        ({"card_back": "e"}, "e is the key of card.edit already"),
        ({"threads_back": "x"}, "x is needed in text fields"),
        ({"threads_search": "ctrl+p"}, "^p is the key of app.palette already"),
        ({"app_palette": "f4"}, "F4 is the key of edit.editor already"),
        ({"look_json": "ctrl+p"}, "^p is the key of app.palette already"),
    ],
)
def test_an_invalid_key_is_reported_and_ignored(table: dict[str, object], problem: str):
    wishes = {name.replace("_", "."): keys for name, keys in table.items()}
    keymap = load_keymap({**wishes, "app.threads": "Z"})
    assert problem in "\n".join(keymap.problems)
    assert keymap.bindings["app.threads"] == ("Z",)
    owners = [
        (place, key)
        for action in ALL_ACTIONS
        for key in keymap.bindings[action.id]
        for place in places_of(action)
        if (action.id, key) not in PANES_FIRST
    ]
    assert len(owners) == len(set(owners))


def test_no_two_actions_of_a_place_have_a_key_in_common_by_default():
    owners: dict[tuple[str, str], set[str]] = {}
    for action in ALL_ACTIONS:
        for place in places_of(action):
            for key in action.default_keys:
                owners.setdefault((place, key), set()).add(action.id)
    assert [sorted(names) for names in owners.values() if len(names) > 1] == [
        ["list.first", "travel.first"],
        ["list.last", "travel.head"],
    ]


def test_what_a_pane_scrolls_with_else_travels_and_both_may_be_written_down():
    assert problems(travel_first="0,home", list_first="home") == []


def test_a_good_key_beside_a_bad_one_stays():
    keymap = load_keymap({"run.step": "Z,enter"})
    assert keymap.bindings["run.step"] == ("Z",)
    assert len(keymap.problems) == 1


def test_falling_back_to_a_default_key_clashes_with_nobody():
    keymap = load_keymap({"run.step": "d", "run.continue": "s"})
    assert len(keymap.problems) == 2
    assert (keymap.bindings["run.step"], keymap.bindings["run.continue"]) == (("s", "f10"), ("c", "f5"))


def test_problems_start_with_their_place():
    keymap = load_keymap({"run.stp": "n"}, {"run.stp": "config.toml:7"}.__getitem__)
    assert keymap.problems[0].startswith("config.toml:7: ")


@pytest.mark.parametrize(
    "char", [*string.ascii_letters, *string.digits, *string.punctuation, "ä", "ß", "€", "д"]
)
def test_characters_are_keys_as_textual_knows_them(char: str):
    key = parse_key(char)
    # A comma stands between keys, so Textual has no other way to write it either.
    known = "comma" if char == "," else next(iter(Binding.make_bindings([(char, "do", "")]))).key
    assert key == known
    assert types_text(key)
    if char.isascii():
        assert written(key) == char


@pytest.mark.parametrize(
    ("text", "key", "shown"),
    [
        ("escape", "escape", "esc"),
        ("f12", "f12", "F12"),
        ("shift+a", "A", "A"),
        ("shift+ctrl+up", "ctrl+shift+up", "ctrl+shift+↑"),
        ("ctrl+_", "ctrl+underscore", "^_"),
        ("+", "plus", "+"),
        ("question_mark", "question_mark", "?"),
        ("space", "space", "space"),
    ],
)
def test_names_of_keys(text: str, key: str, shown: str):
    assert parse_key(text) == key
    assert written(key) == shown


@pytest.mark.parametrize(
    "text", ["", "ctrl+", "ctrl", "ctrl+ctrl+a", "f25", "\x1b", "ab", "ctrl+m", "a\x1b[2J", "\u202e"]
)
def test_an_unknown_key_name_is_refused(text: str):
    with pytest.raises(NoKey):
        parse_key(text)


@pytest.mark.slow
def test_it_needs_no_screen():
    code = "import sys, hitl_tui.verbs.keymap; print({'textual', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
