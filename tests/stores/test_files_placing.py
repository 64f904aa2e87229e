"""An import into a files store is there whole or not at all, whenever its process is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hitl_tui import MemoryCheckpointer
from hitl_tui.errors import LogCorrupt, ThreadBusy
from hitl_tui.stores import FileCheckpointer
from hitl_tui.stores.files import store
from hitl_tui.stores.files import store as files
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.engine.run.booking import World
from tests.engine.run.nested_trip import DESK, TEAM, nested
from tests.stores.log_writer import Writer
from tests.stores.processes import process
from tests.support.spec import spec

pytestmark = spec("10")

IMPORTING = """
import os, signal
from hitl_tui.stores.transfer import import_thread

left, rename = int(sys.argv[3]), os.rename

def die_after_some(source, target):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    rename(source, target)

os.rename = die_after_some
store = FileCheckpointer(sys.argv[1])
with open(sys.argv[2], "rb") as lines:
    import_thread(store, lines)
os.kill(os.getpid(), signal.SIGKILL)
"""

HALF_WAY = """
import os, signal
from hitl_tui.stores.files import store
from hitl_tui.stores.transfer import import_thread

store.os.sync = lambda: os.kill(os.getpid(), signal.SIGKILL)
with open(sys.argv[2], "rb") as lines:
    import_thread(FileCheckpointer(sys.argv[1]), lines)
"""


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A thread with two inside it."""
    store = MemoryCheckpointer()
    nested(store, World()).invoke({"note": "x"}, thread_id="t")
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"".join(export_thread(store, "t")))
    return file


def killed_after(renames: int, root: Path, exported: Path) -> None:
    with process(IMPORTING, root, exported, renames) as importing:
        assert importing.wait() == -signal.SIGKILL


def names(store: FileCheckpointer) -> set[str]:
    return {one.info.thread_id for one in store.threads()}


def take_in(store: FileCheckpointer, exported: Path) -> str:
    with exported.open("rb") as lines:
        return import_thread(store, lines)


@pytest.mark.parametrize("renames", [0, 1, 2])
@pytest.mark.integration
def test_an_import_killed_before_its_end_leaves_nothing_and_can_be_made_again(
    root: Path, exported: Path, renames: int
) -> None:
    killed_after(renames, root, exported)
    store = FileCheckpointer(root)
    assert names(store) == set()
    assert take_in(store, exported) == "t"
    assert names(store) == {"t", TEAM, DESK}
    assert nested(store, World()).verify("t").ok


def left_behind(root: Path) -> list[str]:
    """What is hidden among the threads."""
    return sorted(one.name for one in (root / "threads").iterdir() if one.name.startswith("."))


@pytest.mark.parametrize("renames", [0, 1, 2])
@pytest.mark.integration
def test_remains_of_a_killed_import_are_removed_when_the_store_is_opened(
    root: Path, exported: Path, renames: int
) -> None:
    killed_after(renames, root, exported)
    assert left_behind(root)
    FileCheckpointer(root)
    assert left_behind(root) == []


@pytest.mark.integration
def test_a_thread_that_is_half_filled_when_its_writer_is_killed_is_taken_away(
    root: Path, exported: Path
) -> None:
    with process(HALF_WAY, root, exported) as importing:
        assert importing.wait() == -signal.SIGKILL
    assert any((root / "threads" / name / "info.json").exists() for name in left_behind(root))
    assert take_in(FileCheckpointer(root), exported) == "t"
    assert left_behind(root) == []


def test_a_directory_that_a_living_process_fills_is_left_alone(
    root: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileCheckpointer(root)
    filled: list[list[str]] = []

    def look_while_it_is_filled() -> None:
        FileCheckpointer(root)
        filled.append(left_behind(root))

    monkeypatch.setattr(os, "sync", look_while_it_is_filled)
    assert take_in(store, exported) == "t"
    assert filled
    assert all(filled)
    assert names(FileCheckpointer(root)) == {"t", TEAM, DESK}
    assert nested(store, World()).verify("t").ok
    assert left_behind(root) == []


@pytest.mark.integration
def test_an_import_killed_at_its_very_end_is_there(root: Path, exported: Path) -> None:
    killed_after(3, root, exported)
    store = FileCheckpointer(root)
    assert names(store) == {"t", TEAM, DESK}
    with pytest.raises(ThreadBusy, match="'t'"):
        take_in(store, exported)


@pytest.mark.integration
def test_a_process_that_had_the_store_open_can_import_again_too(root: Path, exported: Path) -> None:
    store = FileCheckpointer(root)
    killed_after(2, root, exported)
    FileCheckpointer(root)
    assert take_in(store, exported) == "t"
    assert names(store) == {"t", TEAM, DESK}


@pytest.mark.integration
def test_a_thread_that_took_the_name_of_a_killed_import_stays(root: Path, exported: Path) -> None:
    store = FileCheckpointer(root)
    killed_after(0, root, exported)
    Writer(store, TEAM).step({"a": 1})
    assert names(FileCheckpointer(root)) == {TEAM}


def test_a_refused_import_leaves_no_list_behind(
    root: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileCheckpointer(root)
    place_all = files._place_all
    faster: list[Writer] = []

    def late(*arguments: object) -> None:
        faster.append(Writer(store, TEAM))
        place_all(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "_place_all", late)
    with pytest.raises(ThreadBusy, match=TEAM):
        take_in(store, exported)
    assert names(FileCheckpointer(root)) == {TEAM}
    assert sorted(file.name for file in root.iterdir()) == [
        "graphs",
        "hitl-tui-store.json",
        "lock",
        "threads",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "[{",
        '[{"new": "../../precious", "name": "t-0123456789abcdef"}]',
        '[{"new": ".new-0123456789abcdef0123456789abcdef", "name": "../../precious"}]',
    ],
)
def test_a_list_that_is_damaged_or_leads_elsewhere_is_refused(root: Path, content: str) -> None:
    FileCheckpointer(root)
    precious = root.parent / "precious"
    precious.mkdir()
    (root / store.LIST).write_text(content)
    with pytest.raises(LogCorrupt, match=r"placing\.json is damaged") as refused:
        FileCheckpointer(root)
    assert refused.value.hint == "take it away"
    assert precious.is_dir()
