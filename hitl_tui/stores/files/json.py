"""Converts records to and from the JSON files of a store.

People can read the files, too: indented, fields in a fixed order, hashes as `sha256:<hex>`.  Values keep the
order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.threads import Lease, PauseRequest, Presence, ThreadInfo
from hitl_tui.engine.state.values import check_nesting
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.stores.lineage import Origin, Past, Spending

T = TypeVar("T", bound=msgspec.Struct)

_HASHES = {
    UpdateRecord: ("previous_hash", "update_hash", "next_hash", "prev_record_hash", "record_hash"),
    Checkpoint: ("state_hash", "ledger_hash", "cursor_hash", "checkpoint_hash"),
    LedgerEntry: ("seen", "prev_hash", "hash", "pending_hash", "request_hash", "cursor_hash"),
    Cursor: ("last_record_hash", "checkpoint_hash", "ledger_hash"),
    ThreadInfo: ("facts_hash",),
}
PREFIX = "sha256:"

_encode = msgspec.json.Encoder().encode


class _StepFile(msgspec.Struct):
    checkpoint: dict[str, Any]
    records: list[dict[str, Any]] = []
    spent: list[Spending] | None = None


class _CheckpointPart(msgspec.Struct):
    checkpoint: dict[str, Any]
    spent: list[Spending] | None = None


class _RecordsPart(msgspec.Struct):
    records: list[dict[str, Any]]


class _InfoFile(msgspec.Struct):
    info: dict[str, Any]
    order: int
    shared_entries: int = 0
    past: tuple[Past, ...] = ()


class _CursorFile(msgspec.Struct):
    cursor: msgspec.Raw
    last_writer: str
    digest: str


_decode_checkpoint = msgspec.json.Decoder(_CheckpointPart).decode
_decode_records = msgspec.json.Decoder(_RecordsPart).decode
_decode_info = msgspec.json.Decoder(_InfoFile).decode
_decode_cursor = msgspec.json.Decoder(_CursorFile).decode
_decode_pause = msgspec.json.Decoder(PauseRequest).decode
_decode_presence = msgspec.json.Decoder(tuple[Presence, ...]).decode
_decode_lease = msgspec.json.Decoder(Lease).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def plain(row: msgspec.Struct) -> dict[str, Any]:
    """Return a row as a JSON object, hashes as text, without unset fields and an empty `patched`.

    Database logins are left out, too: only a database can vouch for them.
    """
    fields = {
        name: value for name, value in msgspec.structs.asdict(row).items() if value is not msgspec.UNSET
    }
    if not fields.get("patched", True):
        del fields["patched"]
    if isinstance(row, LedgerEntry):
        del fields["login"]
    for name in _HASHES.get(type(row), ()):
        fields[name] = hash_text(fields[name])
    return fields


def row_of(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Return the row of a JSON object.

    Raises:
        ValueError: the object is no such row (msgspec's errors are `ValueError`s).
    """
    values = dict(fields)
    if kind is LedgerEntry:
        values.pop("login", None)
    for name in _HASHES.get(kind, ()):
        values[name] = digest_of(values.get(name), name)
    return msgspec.convert(values, kind)


def step_file(commit: Commit, point: Checkpoint, spent: Iterable[Spending] | None) -> bytes:
    """Encode a step: its checkpoint, its records, and maybe the spending of all steps up to it."""
    records = [plain(record) for record in commit.records]
    body = _StepFile(plain(point), records, None if spent is None else list(spent))
    return _pretty(body)


def checkpoint_of(data: bytes) -> tuple[Checkpoint, list[Spending] | None]:
    """Decode the checkpoint of a step file, and the spending of all steps up to it if the file has it."""
    check_nesting(data)
    part = _decode_checkpoint(data)
    return row_of(Checkpoint, part.checkpoint), part.spent


def records_of(data: bytes) -> list[UpdateRecord]:
    """Decode the records of a step file."""
    check_nesting(data)
    return [row_of(UpdateRecord, fields) for fields in _decode_records(data).records]


def entry_file(entry: LedgerEntry) -> bytes:
    """Encode one decision."""
    return _pretty(plain(entry))


def entry_of(data: bytes) -> LedgerEntry:
    """Decode what `entry_file` wrote."""
    check_nesting(data)
    return row_of(LedgerEntry, _decode_object(data))


def cursor_file(cursor: Cursor, last_writer: str, facts: bytes) -> bytes:
    """Encode a thread's cursor; `facts` is the thread's `facts_hash`."""
    body = msgspec.Raw(_encode(plain(cursor)))
    digest = chained(bytes(body) + _encode(last_writer), facts)
    return _pretty(_CursorFile(body, last_writer, f"{PREFIX}{digest.hex()}"))


def cursor_of(data: bytes, facts: bytes | None) -> tuple[Cursor, str]:
    """Decode the cursor and the last writer.

    Args:
        facts: the thread's `facts_hash`; None to skip the check of the file's hash.

    Raises:
        ValueError: it is not what was written.
    """
    check_nesting(data)
    file = _decode_cursor(data)
    body = msgspec.json.format(bytes(file.cursor), indent=-1)
    if facts is not None and chained(body + _encode(file.last_writer), facts) != digest_of(
        file.digest, "digest"
    ):
        raise ValueError("the cursor is not what was written")
    return row_of(Cursor, _decode_object(body)), file.last_writer


def info_file(origin: Origin, order: int) -> bytes:
    """Encode a thread's info; `order` orders threads made at the same time."""
    return _pretty(_InfoFile(plain(origin.info), order, origin.shared_entries, origin.past))


def info_of(data: bytes) -> tuple[Origin, int]:
    """Decode what `info_file` wrote."""
    check_nesting(data)
    file = _decode_info(data)
    return Origin(row_of(ThreadInfo, file.info), file.shared_entries, file.past), file.order


def lease_file(lease: Lease) -> bytes:
    """Encode a thread's lease."""
    return _pretty(lease)


def lease_of(data: bytes) -> Lease:
    """Decode what `lease_file` wrote."""
    return _decode_lease(data)


def pause_file(request: PauseRequest) -> bytes:
    """Encode a pause request to a thread's holder."""
    return _pretty(request)


def pause_of(data: bytes) -> PauseRequest:
    """Decode what `pause_file` wrote."""
    return _decode_pause(data)


def presence_file(attending: tuple[Presence, ...]) -> bytes:
    """Encode who views or claims a thread's requests."""
    return _pretty(attending)


def presence_of(data: bytes) -> tuple[Presence, ...]:
    """Decode what `presence_file` wrote."""
    return _decode_presence(data)


def _pretty(body: Any) -> bytes:
    return msgspec.json.format(_encode(body), indent=2) + b"\n"


def hash_text(digest: bytes) -> str:
    """Return a hash as text; "" for none."""
    return f"{PREFIX}{digest.hex()}" if digest else ""


def digest_of(text: Any, name: str) -> bytes:
    """Parse a hash written as text, "" to b""; raises `ValueError`, which names the field."""
    if text == "":
        return b""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        raise ValueError(f"{name} is no hash")
    digest = bytes.fromhex(text.removeprefix(PREFIX))
    if len(digest) != 32:
        raise ValueError(f"{name} is no hash of 32 bytes")
    return digest
