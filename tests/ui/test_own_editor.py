"""The user's own editor: saved text is applied or kept, and the editor ends with the app."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hitl_tui.ui.editor import EditorFailed, edit_in_editor

DRAFT = "what was there"


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a shell script the editor; $1 is the file. Files for it are made in `tmp_path`."""

    def use(script: str) -> None:
        (tmp_path / "editor.sh").write_text(script)
        monkeypatch.setenv("VISUAL", f"sh {tmp_path / 'editor.sh'}")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return use


def refusal(text: str = DRAFT) -> EditorFailed:
    with pytest.raises(EditorFailed) as failed:
        edit_in_editor(text, ".md")
    return failed.value


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.glob("hitl-tui-*/**/*") if path.is_file()]


def test_what_is_saved_is_taken_and_no_file_stays(editor, tmp_path: Path):
    editor('echo new > "$1"')
    assert edit_in_editor(DRAFT, ".md") == "new"
    assert list(tmp_path.glob("hitl-tui-*")) == []


def test_files_of_an_editor_are_private_whatever_their_mode(editor, tmp_path: Path):
    modes = tmp_path / "modes"
    replaces = 'cp "$1" "$1~"; chmod 666 "$1~"; echo mine > new; chmod 666 new; mv new "$1"'
    editor(
        f'stat -c %a "$(dirname "$1")" "$1" > {modes}; cd "$(dirname "$1")"; {replaces}; '
        f'stat -c %a "$(dirname "$1")" >> {modes}'
    )
    assert edit_in_editor(DRAFT, ".md") == "mine"
    assert modes.read_text().split() == ["700", "600", "700"]
    assert list(tmp_path.glob("hitl-tui-*")) == []


def test_kept_texts_are_in_a_private_directory(editor, tmp_path: Path):
    editor('rm "$1"; echo kept > "$1"; chmod 666 "$1"; exit 1')
    refusal()
    (file,) = kept(tmp_path)
    assert file.read_text() == "kept\n"
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_text_that_is_not_utf_8_is_refused_and_leaves_nothing(editor, tmp_path: Path):
    editor("true")
    assert "surrogate" in refusal("\ud800").message
    assert list(tmp_path.glob("hitl-tui-*")) == []


def test_what_was_saved_before_the_editor_crashed_is_kept(editor, tmp_path: Path):
    editor('echo saved > "$1"; kill -SEGV $$')
    error = refusal()
    (file,) = kept(tmp_path)
    assert file.read_text() == "saved\n"
    assert "ended with code -11" in error.message
    assert str(file) in error.hint


def test_an_editor_that_saved_nothing_leaves_no_file(editor, tmp_path: Path):
    editor("exit 1")
    assert refusal().hint == "nothing was saved there"
    assert list(tmp_path.glob("hitl-tui-*")) == []


def test_a_file_that_is_not_text_is_kept(editor, tmp_path: Path):
    editor("printf '\\377\\376' > \"$1\"")
    error = refusal()
    (file,) = kept(tmp_path)
    assert str(file) in error.hint
    assert file.read_bytes() == b"\xff\xfe"


@pytest.mark.parametrize("script", ['rm "$1"', 'rm "$1"; mkdir "$1"', 'rm "$1"; mkfifo "$1"'])
def test_a_removed_file_is_reported(editor, script: str):
    editor(script)
    assert "no longer exists" in refusal().message


def test_an_unwritable_directory_is_reported(editor, monkeypatch: pytest.MonkeyPatch):
    editor("true")
    monkeypatch.setattr("tempfile.tempdir", "/dev/full")
    assert refusal().hint == "check TMPDIR"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_app_that_gets_a_signal_ends_the_editor_and_keeps_the_text(editor, number: signal.Signals):
    signals: list[int] = []
    before = signal.signal(number, lambda number, _: signals.append(number))
    try:
        editor(f'echo saved > "$1"; kill -{int(number)} $PPID; exec sleep 100')
        assert edit_in_editor(DRAFT, ".md") == "saved"
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert signals == [number]


def test_a_second_signal_kills_an_editor_that_stays(editor):
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        editor("trap '' TERM; kill -TERM $PPID; sleep 2; kill -TERM $PPID; exec sleep 100")
        assert edit_in_editor(DRAFT, ".md") == DRAFT
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_editor_that_returns_at_once_is_said_to_have_taken_nothing(editor, tmp_path: Path):
    editor("true")
    error = refusal()
    assert "returned at once" in error.message
    assert "--wait" in error.hint
    (file,) = kept(tmp_path)
    assert str(file) in error.hint


def test_a_mark_and_line_ends_of_another_system_are_no_part_of_the_text(editor):
    editor(r"""printf '\357\273\277one\r\ntwo\r\n' > "$1" """)
    assert edit_in_editor(DRAFT, ".md") == "one\ntwo"
