"""Opens a text in the user's own editor and reads it back; the text survives whatever happens there."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from textual.app import App, SuspendNotSupported

from hitl_tui.errors import HitlError
from hitl_tui.given_files import text_of
from hitl_tui.ui.terminal import run_on_the_terminal

T = TypeVar("T")
_LARGEST: Final = 64 << 20
"""Bytes; far more than any channel accepts unless its graph says so."""
_AT_ONCE: Final = 0.5
"""Seconds in which nobody can have read a text and decided to leave it unchanged."""


class EditorFailed(HitlError):
    """The editor could not be started or ended with an error; the text is unchanged."""

    title = "The editor failed"


def editor_command() -> list[str]:
    """Return $VISUAL, else $EDITOR, else the first of nano, vim and vi that is installed.

    Raises:
        EditorFailed: there is none, or its command can't be parsed.
    """
    for name in ("VISUAL", "EDITOR"):
        if os.environ.get(name, "").strip():
            return _split(name, os.environ[name])
    for name in ("nano", "vim", "vi"):
        if shutil.which(name):
            return [name]
    raise EditorFailed("no editor was found", "set EDITOR, as in EDITOR=nano")


def _split(name: str, command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise EditorFailed(f"{name}={command}: {error}", f"check {name}") from None


def edited_outside(app: App[Any], text: str, *, as_json: bool) -> str:
    """Return the text after the user edited it in their own editor, which has the terminal meanwhile.

    Raises:
        EditorFailed: there is none or it failed; the text is unchanged.
    """
    return _suspended(app, lambda: edit_in_editor(text, ".json" if as_json else ".md"))


def _suspended(app: App[Any], work: Callable[[], T]) -> T:
    """Suspend the screen while another program has the terminal, and restore it afterwards."""
    outcome: T | EditorFailed
    try:
        with app.suspend():
            # An error that left this block would leave the terminal handed over for good.
            try:
                outcome = work()
            except EditorFailed as error:
                outcome = error
    except SuspendNotSupported:
        raise EditorFailed("this terminal can't be handed to an editor") from None
    if isinstance(outcome, EditorFailed):
        raise outcome
    return outcome


_PLUS: Final = frozenset(
    {
        "vim",
        "nvim",
        "vi",
        "view",
        "nano",
        "emacs",
        "emacsclient",
        "micro",
        "kak",
        "joe",
        "mg",
        "gedit",
        "kate",
    }
)
_GOTO: Final = frozenset({"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"})
_COLON: Final = frozenset({"hx", "helix", "subl", "sublime_text", "zed", "zeditor"})


def command_at(command: Sequence[str], file: str, line: int) -> list[str]:
    """Return the command that opens a file at a line, in the syntax of the named editor; an unknown editor
    opens it at its top."""
    editor = Path(command[0]).name.removesuffix(".exe")
    if editor in _PLUS:
        return [*command, f"+{line}", file]
    if editor in _GOTO:
        return [*command, "-g", f"{file}:{line}"]
    return [*command, f"{file}:{line}" if editor in _COLON else file]


def open_at(app: App[Any], file: str, line: int) -> None:
    """Open a file of the user's at a line, in their own editor, which has the terminal meanwhile.

    Raises:
        EditorFailed: there is no such file here, for example if the thread ran elsewhere, or no editor.
    """
    if not os.path.isabs(file) or not os.path.isfile(file):
        raise EditorFailed(f"there is no file {file} here")
    command = command_at(editor_command(), file, line)

    def run() -> int:
        try:
            return run_on_the_terminal(command)
        except OSError as error:
            raise EditorFailed(f"{command[0]}: {error.strerror or error}", "check EDITOR") from error

    if code := _suspended(app, run):
        raise EditorFailed(f"{command[0]} ended with code {code}")


def edit_in_editor(text: str, suffix: str) -> str:
    """Return the text as the user leaves it in the editor; call it while the app is suspended.

    The file is in a directory of its own that nobody else can enter, since an editor that replaces the file
    or keeps a copy beside it gives those any mode. It is kept if something was saved that can't be used.

    Raises:
        EditorFailed: with the name of the file that is kept, if one is.
    """
    command = editor_command()
    path = _written(text, suffix)
    before, begin = path.read_bytes(), time.monotonic()
    try:
        code = run_on_the_terminal([*command, str(path)])
    except OSError as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise EditorFailed(f"{command[0]}: {error.strerror or error}", "check EDITOR") from error
    edited = _read_back(path)
    if code != 0:
        said = f"{command[0]} ended with code {code}"
        if path.read_bytes() != before:
            raise EditorFailed(said, f"what you saved there was not used; it is kept in {path}")
        shutil.rmtree(path.parent, ignore_errors=True)
        raise EditorFailed(said, "nothing was saved there")
    if time.monotonic() - begin < _AT_ONCE and path.read_bytes() == before:
        raise EditorFailed(
            f"{command[0]} returned at once, and nothing was saved",
            "if it opens a window, it has to wait until you close it, as in EDITOR='code --wait'; what you "
            f"save now is not used, but kept in {path}",
        )
    shutil.rmtree(path.parent, ignore_errors=True)
    # Editors add a line break at the end that the value did not have.
    return edited[:-1] if edited.endswith("\n") and not text.endswith("\n") else edited


def _written(text: str, suffix: str) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="hitl-tui-"))  # made with mode 700
    except OSError as error:
        raise EditorFailed(f"a temporary file can't be created: {error}", "check TMPDIR") from error
    path = folder / f"text{suffix}"
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except (OSError, UnicodeEncodeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        words = (error.strerror if isinstance(error, OSError) else "") or error
        raise EditorFailed(f"{path}: {words}", "check TMPDIR") from error
    return path


def _read_back(path: Path) -> str:
    """Return the content of the file."""
    try:
        if not path.is_file():
            shutil.rmtree(path.parent, ignore_errors=True)
            raise EditorFailed(f"{path} no longer exists", "what you saved there is lost")
        if path.stat().st_size > _LARGEST:
            size = f"{path.stat().st_size:,} bytes"
            raise EditorFailed(f"{size} are too many", f"what you saved is kept in {path}")
        return text_of(path.read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        raise EditorFailed(f"what you saved can't be read: {error}", f"it is kept in {path}") from error
