"""`doctor`: checks that a session has everything it needs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import store_option
from hitl_tui.cli.output import emit, json_option, one_line, say, table
from hitl_tui.cli.reports import DoctorDocument, Finding
from hitl_tui.errors import ExitCode, HitlError, NoSuchStore, SigningFailed

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.stores import Checkpointer

_LIBRARIES = ("textual", "rich", "litellm", "click", "msgspec", "tomli", "jsonschema-rs", "rfc8785")
_KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AZURE_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY",
    "GROQ_API_KEY", "COHERE_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY",
)  # fmt: skip


@click.command()
@store_option
@json_option
def doctor(store: str | None, as_json: bool) -> int:
    """Check versions, store, terminal, directories and keys.

    For API keys it shows only whether they are set. Exit code 1 if something is wrong.

        hitl-tui doctor
    """
    findings = [*_versions(), *_settings(store), *_signing(), *_terminal(), *_directories(), *_keys()]
    well = all(finding.ok for finding in findings)
    if as_json:
        emit(DoctorDocument(doctor=tuple(findings), ok=well))
    else:
        say(
            *table(
                [
                    ("ok" if finding.ok else "WRONG", finding.subject, one_line(finding.value, 300))
                    for finding in findings
                ],
                prose=True,
            )
        )
    return ExitCode.DONE if well else ExitCode.FAILED


def _versions() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    from hitl_tui import __version__

    yield Finding("hitl-tui", __version__)
    yield Finding("python", sys.version.split()[0])
    for name in _LIBRARIES:
        try:
            yield Finding(name, version(name))
        except PackageNotFoundError:
            yield Finding(name, "not installed", ok=False)


def _settings(store: str | None) -> Iterator[Finding]:
    from hitl_tui.config import load_settings

    try:
        settings = load_settings({"store": store})
    except HitlError as error:
        yield Finding("settings", error.message, ok=False)
        return
    from hitl_tui.verbs.keymap import load_keymap

    yield Finding("settings", "fine")
    for problem in load_keymap(settings.keys, lambda name: settings.key_places.get(name, name)).problems:
        yield Finding("keys", problem, ok=False)
    from hitl_tui.cli.storage import open_existing, store_path
    from hitl_tui.stores.opening import is_server, without_password

    yield from _sources(settings)
    if is_server(settings.store):
        yield from _server(settings.store)
    try:
        path = store_path(settings)
        opened = open_existing(settings)
        try:
            yield from _leases(opened)
            newest = opened.threads(limit=1)
        finally:
            opened.close()
    except NoSuchStore:
        yield Finding("store", f"{without_password(settings.store)}: none yet, it is made when it is needed")
        return
    except HitlError as error:
        yield Finding(
            "store", f"{without_password(settings.store)}: {error.title}: {error.message}", ok=False
        )
        return
    what = "holds threads" if newest else "is empty"
    yield Finding("store", f"{without_password(settings.store)}: can be read, {what}")
    if path is not None and not os.access(path, os.W_OK):
        yield Finding("store", f"{path} is read-only for you", ok=False)


def _sources(settings: Settings) -> Iterator[Finding]:
    """Return which sources of the inbox can be read."""
    from hitl_tui.cli.inbox import inbox_stores, read_inbox

    stores = inbox_stores(settings)
    for source in read_inbox(stores)[1] if stores else ():
        is_ready = source.status == "ready"
        yield Finding("inbox", f"{source.name}: {'can be read' if is_ready else source.problem}", ok=is_ready)


def _leases(store: Checkpointer) -> Iterator[Finding]:
    """Return leases without an owner, or unreadable ones; `verify` reports those of one thread."""
    for name, fault in store.doubtful_leases():
        forged = f"{fault.actual} claims to run it for longer than is possible; this has no effect"
        what = forged if fault.expected else fault.actual
        yield Finding("lease", f"thread {name}: {what} (`hitl-tui verify`)", ok=False)


def _server(url: str) -> Iterator[Finding]:
    """Return what is wrong with the database server of a store."""
    try:
        from hitl_tui.stores.postgres.checks import checks
    except ImportError:
        return  # reported for the store
    for check in checks(url):
        hint = f" ({check.hint})" if check.hint and not check.ok else ""
        yield Finding(check.subject, f"{check.value}{hint}", ok=check.ok)


def _signing() -> Iterator[Finding]:
    """Return whether decisions can be signed, by trying the key."""
    from hitl_tui.config import load_settings
    from hitl_tui.signing import SshSigner, fingerprint

    try:
        key = load_settings().signing_key
        if key is None:
            there = shutil.which("ssh-keygen")
            yield Finding("signing", f"no signing_key; {there or 'there is no ssh-keygen'}")
            return
        signature = SshSigner(key).sign(b"doctor")
    except SigningFailed as error:
        yield Finding("signing", f"{error.message} ({error.hint})", ok=False)
    except HitlError:
        return  # reported for the settings
    else:
        yield Finding("signing", f"{key} signs ({fingerprint(signature)})")


def _terminal() -> Iterator[Finding]:
    size = shutil.get_terminal_size((0, 0))
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    yield Finding("terminal", f"{size.columns}x{size.lines}" if is_terminal else "none: plain text mode")
    yield Finding("TERM", os.environ.get("TERM", "") or "not set")
    yield Finding("colour", "off by NO_COLOR" if os.environ.get("NO_COLOR") else "on")
    yield Finding("encoding", sys.stdout.encoding or "unknown")


def _directories() -> Iterator[Finding]:
    from hitl_tui.cli.logs import log_path
    from hitl_tui.config import config_path, data_folder

    yield _directory("configuration", config_path().parent)
    yield _directory("data", data_folder())
    yield _directory("log", log_path().parent)


def _directory(about: str, path: Path) -> Finding:
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        return Finding(about, f"{path} can't be written", ok=False)
    return Finding(about, str(path) if there == path else f"{path} (made when it is needed)")


def _keys() -> Iterator[Finding]:
    for name in _KEYS:
        yield Finding(name, "set" if os.environ.get(name) else "not set")
