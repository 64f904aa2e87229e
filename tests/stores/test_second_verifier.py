"""`import` and a verifier written from docs/spec/verify.md alone say the same of changed exports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.stores.export_mutations import NAMES, Lines, exports, sealed, verdicts, walk, walk_forged
from tests.support import second_verifier


@pytest.fixture(scope="module")
def made() -> dict[str, Lines]:
    return exports()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_both_find_a_mutation_or_neither_does_for_a_reason(made: dict[str, Lines], name: str) -> None:
    _, differences = walk(name, made[name], 20, seed=7)
    assert differences == []
    outcomes, differences = walk_forged(name, made[name], 4, seed=7)
    assert differences == []
    assert outcomes["anchored", "found"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_agree_on_more_mutations(made: dict[str, Lines], name: str) -> None:
    _, differences = walk(name, made[name], 100, seed=8)
    assert differences == []
    _, differences = walk_forged(name, made[name], 20, seed=8)
    assert differences == []


def test_the_second_verifier_is_short_and_imports_nothing_of_the_product() -> None:
    source = Path(second_verifier.__file__).read_text()
    names = [
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert not [name for name in names if name.startswith(("hitl_tui", "msgspec", "tests"))]
    assert len(source.splitlines()) <= 300


def test_an_export_that_leaves_private_values_out_cannot_be_verified(made: dict[str, Lines]) -> None:
    left_out = made["waits"][0].replace(b'"left_out":[]', b'"left_out":["secret"]')
    first, second = verdicts([left_out, *made["waits"][1:]])
    assert first
    assert second


def test_a_list_of_another_type_is_refused(made: dict[str, Lines]) -> None:
    header, *rest = made["asked"]
    assert all(verdicts(sealed([header.replace(b'"inside":[]', b'"inside":{}'), *rest])))
