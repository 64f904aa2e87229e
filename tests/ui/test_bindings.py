"""Every key of every screen and widget has an id of the tables of actions."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

import hitl_tui.ui
from hitl_tui.ui.app import HitlApp
from hitl_tui.verbs.actions import ALL_BY_ID, SCREEN_ACTIONS

NEVER_CHANGED = {(HitlApp, "ctrl+q"), (HitlApp, "ctrl+c"), (HitlApp, "ctrl+z")}
"""There must be a way out whatever a configuration says, and the shell's keys work as anywhere."""


def classes() -> Iterator[type[DOMNode]]:
    """All screens and widgets of ours, and the app."""
    for module in pkgutil.walk_packages(hitl_tui.ui.__path__, "hitl_tui.ui."):
        for found in vars(importlib.import_module(module.name)).values():
            if isinstance(found, type) and issubclass(found, DOMNode) and found.__module__ == module.name:
                yield found


CLASSES = sorted(set(classes()), key=lambda one: one.__qualname__)


def own(node: type[DOMNode]) -> list[Binding]:
    """The bindings that a class itself adds."""
    found = node.__dict__.get("BINDINGS", [])
    assert all(isinstance(one, Binding) for one in found), "a tuple has no id"
    return [one for one in found if (node, one.key) not in NEVER_CHANGED]


@pytest.mark.parametrize("node", [one for one in CLASSES if own(one)], ids=lambda node: node.__qualname__)
def test_each_key_has_an_id_and_is_the_default_of_its_action(node: type[DOMNode]):
    for binding in own(node):
        action = ALL_BY_ID.get(binding.id or "")
        assert action is not None, f"{binding.key} of {node.__qualname__} has no id in screen_actions.py"
        assert ",".join(action.default_keys) == binding.key


def test_no_action_of_a_screen_is_without_a_screen():
    bound = {binding.id for node in CLASSES for binding in own(node)}
    assert [action.id for action in SCREEN_ACTIONS if action.id not in bound] == []


def test_the_walk_finds_them():
    assert len([node for node in CLASSES if own(node)]) > 20
