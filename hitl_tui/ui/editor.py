"""Hands a text to the user's own editor and takes it back; the text survives whatever happens there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from hitl_tui.errors import HitlError
from hitl_tui.ui.signals import ctrl_c_as_usual, ctrl_c_left_to_a_child


class EditorFailed(HitlError):
    """The editor could not be started or ended with an error; the text is as it was."""

    title = "The editor failed"


def editor_command() -> list[str]:
    """$VISUAL, else $EDITOR, else the first of the usual ones that is there.

    Raises:
        EditorFailed: there is none, or it can't be read.
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


def edit_in_editor(text: str, suffix: str) -> str:
    """The text as the user leaves it in the editor; call it while the app is suspended.

    The file is readable by the user alone and is kept, and named in the error, if reading it back fails.
    """
    command = editor_command()
    descriptor, name = tempfile.mkstemp(prefix="hitl-tui-", suffix=suffix)
    path = Path(name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        with ctrl_c_left_to_a_child():
            code = subprocess.call([*command, name], preexec_fn=ctrl_c_as_usual)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise EditorFailed(f"{command[0]}: {error.strerror or error}", "check EDITOR") from error
    try:
        edited = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EditorFailed(f"{path}: {error}", "the file is still there") from error
    path.unlink(missing_ok=True)
    if code != 0:
        raise EditorFailed(f"{command[0]} ended with code {code}", "what you wrote there was dropped")
    # Editors end a file with a line break that the value did not have.
    return edited[:-1] if edited.endswith("\n") and not text.endswith("\n") else edited
