"""Trust: what a record names is built only where its user agreed to it, asked only where they must be."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import sys
from pathlib import Path

import pytest

from hitl_tui.loading.code import forget_code
from hitl_tui.loading.trust import NotTrusted, Trust


class Place:
    """A folder with a graph, and what this user agreed to run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "graphs"
        self.folder.mkdir()
        self.kept = folder / "data" / "trust.json"
        self.file = self.folder / "flow.py"
        self.file.write_text("1\n")
        self.source = {"graph": str(self.file), "options": {}}

    def trust(self, store: str = "/tmp/a.db", *, given: bool = False) -> Trust:
        return Trust(self.kept, store, given=given)

    def asked(self, source: dict[str, object] | None = None) -> tuple[str, ...]:
        """The lines of the question; () where nobody is asked."""
        try:
            self.trust().check(source or self.source)
        except NotTrusted as error:
            return error.question.lines
        return ()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_was_never_run_from_this_store_is_asked_about(place: Place) -> None:
    assert f"file: {place.file}" in place.asked()
    place.trust("/tmp/other.db").record(place.source, "named")
    assert place.asked()
    place.trust().record(place.source, "named")
    assert not place.asked()


@pytest.mark.parametrize(
    "other",
    [{"options": {"api_base": "http://elsewhere"}}, {"options": {"model": "x"}}, {"graph": "other"}],
    ids=["an address", "a model", "a name in it"],
)
def test_other_options_or_another_name_are_another_graph(place: Place, other: dict[str, object]) -> None:
    place.trust().record(place.source, "named")
    if "graph" in other:
        other = {"graph": f"{place.file}:other"}
    lines = place.asked({**place.source, **other})
    assert lines
    for value in other.get("options", {}).values():  # type: ignore[attr-defined]
        assert any(str(value) in line for line in lines)


def test_editing_your_own_file_never_asks(place: Place) -> None:
    place.trust().record(place.source, "named")
    for number in range(3):
        place.file.write_text(f"{number}{number}\n")
        (place.folder / f"helper{number}.py").write_text("")
        assert not place.asked()
        place.trust().record(place.source)


@pytest.mark.parametrize("given", [False, True], ids=["asked", "--trust"])
def test_a_file_that_came_with_a_store_is_asked_about_again_when_it_changed_until_it_is_named(
    place: Place, given: bool
) -> None:
    if given:
        place.trust(given=True).check(place.source)
    else:
        with pytest.raises(NotTrusted) as refused:
            place.trust().check(place.source)
        refused.value.question.agree()
    place.trust().record(place.source)
    assert not place.asked()
    place.file.write_text("2\n")
    assert f"changed: {place.file}" in place.asked()
    with pytest.raises(NotTrusted, match="came with a store that was made elsewhere") as again:
        place.trust().check(place.source)
    again.value.question.agree()
    assert not place.asked()
    place.trust().record(place.source, "named")
    place.file.write_text("3\n")
    assert not place.asked()


def shared(path: Path, *, group: bool) -> None:
    """Let others write a file or a folder."""
    if group:
        try:
            os.chown(path, -1, 54_321)
        except PermissionError:
            pytest.skip("this user can't give a file to another group")
    path.chmod(path.stat().st_mode | (stat.S_IWGRP if group else stat.S_IWOTH))


@pytest.mark.parametrize("group", [False, True], ids=["everybody", "a group"])
@pytest.mark.parametrize("what", ["the file", "its folder"])
def test_what_others_may_write_is_asked_about_when_its_content_changed(
    place: Place, what: str, group: bool
) -> None:
    shared(place.file if what == "the file" else place.folder, group=group)
    place.trust().record(place.source, "named")
    os.utime(place.file)
    assert not place.asked()
    place.file.write_text("2\n")
    assert f"changed: {place.file}" in place.asked()
    with pytest.raises(NotTrusted) as refused:
        place.trust().check(place.source)
    refused.value.question.agree()
    assert not place.asked()


def test_a_module_that_somebody_puts_beside_it_is_seen(place: Place) -> None:
    shared(place.folder, group=False)
    place.trust().record(place.source, "named")
    (place.folder / "json.py").write_text("")
    assert f"new: {place.folder / 'json.py'}" in place.asked()
    (place.folder / "json.py").unlink()
    assert not place.asked()
    (place.folder / "package").mkdir()
    (place.folder / "package" / "__init__.py").write_text("")
    assert f"new: {place.folder / 'package' / '__init__.py'}" in place.asked()


def test_files_of_others_in_a_sticky_folder_are_untrusted(place: Place) -> None:
    place.folder.chmod(0o1777)
    place.trust().record(place.source, "named")
    place.file.write_text("2\n")
    assert not place.asked()
    planted = place.folder / "json.py"
    planted.write_text("")
    try:
        os.chown(planted, 54_321, -1)
    except PermissionError:
        pytest.skip("this user can't give a file away")
    assert f"new: {planted}" in place.asked()


def test_the_files_that_a_graph_file_names_count(place: Place) -> None:
    graph, tools = place.folder / "flow.toml", place.folder / "sub" / "tools.py"
    tools.parent.mkdir()
    tools.write_text("1\n")
    graph.write_text('name = "x"\ntools = ["sub/tools.py:look"]\n')
    source = {"graph": str(graph)}
    assert f"file: {tools}" in place.asked(source)
    place.trust().record(source, "named")
    assert not place.asked(source)
    shared(tools, group=False)
    tools.write_text("2\n")
    assert f"changed: {tools}" in place.asked(source)


def test_a_module_is_found_without_importing_its_package(place: Place) -> None:
    package = place.folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "flow.py").write_text("raise SystemExit('imported')\n")
    lines = place.asked({"graph": "package.flow:build", "directory": str(place.folder)})
    assert f"file: {package / '__init__.py'}" in lines
    assert f"file: {package / 'flow.py'}" in lines
    assert f"directory: {place.folder}" in lines
    assert "package" not in sys.modules


def test_samples_and_workflows_of_ours_are_trusted_unless_an_option_could_redirect_them(place: Place) -> None:
    assert not place.asked({"graph": "review"})
    assert not place.asked({"graph": "hitl_tui.workflows.demo:build", "options": {"pace": 70.0}})
    elsewhere = {"model": "openai/x", "api_base": "http://elsewhere"}
    assert "option api_base: http://elsewhere" in place.asked({"graph": "review", "options": elsewhere})
    assert place.asked({"graph": "hitl_tui.workflows.demo:build", "options": elsewhere})
    assert place.asked({"graph": "hitl_tui.loading.sources:open_graph", "options": {"spec": "evil.py"}})
    assert place.asked({"graph": "os:system", "options": {"command": "true"}})


def test_a_store_in_memory_holds_what_this_process_began(place: Place) -> None:
    Trust(place.kept, "").check(place.source)
    Trust(place.kept, "").record(place.source, "named")
    assert not place.kept.exists()


def test_the_same_store_by_another_path_is_the_same_store(place: Place, tmp_path: Path) -> None:
    real, link = tmp_path / "a.db", tmp_path / "link.db"
    real.write_text("")
    link.symlink_to(real)
    place.trust(str(real)).record(place.source, "named")
    place.trust(str(link)).check(place.source)


def test_text_in_a_record_can_not_forge_a_line(place: Place) -> None:
    hostile = {"x": "a\nfile: innocent.py\x1b[2J", "long": "y" * 5_000}
    lines = place.asked({**place.source, "options": hostile})
    assert not any(line == "file: innocent.py" or "\x1b" in line or len(line) > 300 for line in lines)
    assert any("5,000 characters" in line for line in lines)


def test_what_is_kept_is_for_its_owner_alone_and_names_no_option(place: Place) -> None:
    place.trust().record({**place.source, "options": {"model": "QUITE-PRIVATE"}}, "named")
    assert stat.S_IMODE(place.kept.stat().st_mode) == 0o600
    assert "QUITE-PRIVATE" not in place.kept.read_text()
    assert "named" in {entry["how"] for entry in json.loads(place.kept.read_text())["graphs"].values()}


@pytest.mark.parametrize("damage", ["", "{", '{"graphs": 3}', "\x00\xff"])
def test_a_damaged_file_is_as_none_and_is_replaced(place: Place, damage: str) -> None:
    place.trust().record(place.source, "named")
    place.kept.write_bytes(damage.encode("latin-1"))
    assert place.asked()
    place.trust(given=True).check(place.source)
    assert not place.asked()


def test_trust_that_can_not_be_saved_counts_for_this_process(place: Place) -> None:
    place.kept.parent.write_text("no directory")
    trust = place.trust()
    with pytest.raises(NotTrusted) as refused:
        trust.check(place.source)
    refused.value.question.agree()
    trust.check(place.source)
    assert place.asked()


def _agree_to_many(kept: str, folder: str, first: int) -> None:
    for number in range(first, first + 20):
        file = Path(folder) / f"flow{number}.py"
        file.write_text("")
        Trust(Path(kept), "/tmp/a.db").record({"graph": str(file)}, "named")


@pytest.mark.slow
def test_processes_that_write_at_once_lose_no_word(place: Place) -> None:
    spawn = multiprocessing.get_context("fork")
    folders = [place.folder / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    processes = [
        spawn.Process(target=_agree_to_many, args=(str(place.kept), str(folder), 0)) for folder in folders
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(json.loads(place.kept.read_text())["graphs"]) == 40
    forget_code(place.folder)
