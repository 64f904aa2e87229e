"""Hands a text to the user's own editor and takes it back; the text survives whatever happens there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from hitl_tui.errors import HitlError


class EditorFailed(HitlError):
    """The editor could not be started or ended with an error; the text is as it was."""

    title = "The editor failed"


def editor_command() -> list[str]:
    """$VISUAL, else $EDITOR, else the first of the usual ones that is there.

    Raises:
        EditorFailed: there is none.
    """
    for name in ("VISUAL", "EDITOR"):
        if os.environ.get(name, "").strip():
            return shlex.split(os.environ[name])
    for name in ("nano", "vim", "vi"):
        if shutil.which(name):
            return [name]
    raise EditorFailed("no editor was found", "set EDITOR, as in EDITOR=nano")


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
        code = subprocess.call([*command, name])
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
