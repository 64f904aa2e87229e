"""Exports of an attacker who recomputes everything: values, hashes, links and checksums."""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from collections.abc import Iterator
from copy import deepcopy
from hashlib import sha256
from itertools import pairwise
from typing import Any

import msgspec

from hitl_tui.engine.log.records import Effect, UpdateRecord
from hitl_tui.engine.log.taint import Lineage, Taint, spread
from hitl_tui.engine.state.canonical import channel_hash, item_hash, state_hash
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.engine.thread.rebuild import next_value, update_of
from hitl_tui.stores.files.json import row_of
from tests.support import second_verifier as second

Document = dict[str, Any]
_INPUTS = ("goal", "constraints", "context")


def rebuilt(documents: list[Document], place: int) -> list[Document]:
    """Return an export's documents, one of which was changed, with all that follows from others made anew.

    Args:
        place: the number of the changed document.

    Raises:
        Exception: the change leaves no export at all.
    """
    documents = deepcopy(documents)
    ends = [number for number, document in enumerate(documents) if "cursor" in document]
    for before, end in pairwise([-1, *ends]):
        _Thread(documents[before + 1 : end + 1], documents[place]).rebuild()
    return documents


def _raw(row: Document) -> Document:
    is_hash = {name for name in row if name.endswith("hash") or name == "seen"}
    return {name: second.raw(value) if name in is_hash else value for name, value in row.items()}


def _shown(digest: bytes) -> str:
    return f"sha256:{digest.hex()}" if digest else ""


def altered(documents: list[Document], chance: random.Random) -> tuple[list[Document], int]:
    """Return the documents with one value replaced by another of its type, and the number of that document.

    What can hold only certain words gets one of them.
    """
    documents = deepcopy(documents)
    place = chance.randrange(len(documents))
    values = list(_values(documents[place]))
    holder, key = chance.choice(values)
    words = [one for one in _WORDS.get(key, ()) if holder[key] in one]
    if isinstance(holder[key], bool):
        holder[key] = not holder[key]
    elif words:
        holder[key] = chance.choice(words[0])
    elif isinstance(holder[key], str):
        holder[key] = chance.choice([holder[key] + "x", holder[key][1:] or "y", "another"])
    elif holder[key] is not None:
        holder[key] += chance.choice([1, 2, 10])
    return documents, place


_WORDS: dict[Any, list[tuple[str, ...]]] = {
    "made_by": [("person", "deadline", "policy", "node", "program")],
    "source": [("input", "node", "map", "subgraph", "human", "fork", "rollback")],
    "op": [("reduce", "set")],
    "visibility": [("public", "private")],
    "status": [
        ("running", "waiting", "completed", "pending"),
        ("failed", "ok", "unneeded", "cancelled"),
    ],
    "kind": [
        ("request", "answer", "update_state", "cancel", "refused", "timeout"),
        ("approve", "ask", "edit"),
    ],
    "on_unknown_price": [("warn", "stop")],
    "risk": [("normal", "high")],
    "when": [("before", "after", "inside")],
    "shape": [("", "agent_inbox", "hitl_middleware", "tool_approval")],
    "policy": [("", "on_taint")],
    "text": [("none", "optional", "required")],
}
"""Of fields that hold only certain words, words that may take one another's place."""


def _values(document: Any) -> Iterator[tuple[Any, Any]]:
    """The holder and the key of each value that holds no others."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        if isinstance(value, (dict, list)):
            yield from _values(value)
        else:
            yield document, key


class _Thread:
    """One thread of an export; its documents are changed in place."""

    def __init__(self, documents: list[Document], changed: Document) -> None:
        self.header, *rows, last = documents
        self.cursor, self.changed = last["cursor"], changed
        self.graphs = [row for row in rows if "graph" in row]
        self.steps = [row for row in rows if "step" in row]
        self.entries = [row["decision"] for row in rows if "decision" in row]
        self.past, self.info = self.header["past"], self.header["info"]
        self.starts = [[-1, 0, 0], *(part[1:4] for part in self.past)]
        # The links of the ledger as they were, with what became of each.
        self.links: dict[str, bytes] = {}

    def rebuild(self) -> None:
        self._name_graphs()
        self._follow_inputs()
        self._bind_requests()
        facts_before = [second.raw(part[4]) for part in self.past]
        self._state_facts()
        self._keep_cursor()
        self._chain_decisions(facts_before)
        self._chain_steps()

    def _name_graphs(self) -> None:
        names = [*filter(None, dict.fromkeys((self.info["graph_digest"], self.cursor["graph"])))]
        for name, line in zip(names, self.graphs, strict=True):
            digest = sha256(msgspec.json.encode(line["graph"])).hexdigest()
            for holder, field in ((self.info, "graph_digest"), (self.cursor, "graph")):
                holder[field] = digest if holder[field] == name else holder[field]

    def _follow_inputs(self) -> None:
        given = [one for one in self.entries if one["kind"] == "input" and one["step"] <= self.cursor["head"]]
        own = self.changed.get("cursor") is self.cursor
        for name in _INPUTS if given else ():
            entry = next((one["data"] for one in reversed(given) if name in one["data"]), None)
            if own and entry is not None:
                entry[name] = self.cursor[name]
            elif entry is not None:
                self.cursor[name] = entry[name]

    def _bind_requests(self) -> None:
        for request in self.cursor["pending"]:
            about = [one for one in self.entries if one["request_id"] == request["id"]]
            newest = [one for one in about if one["kind"] in (*second.BINDS, *second.ENDS)][-1]
            hashed = second.own_part(request) if request["thread"] else request
            newest["pending_hash"] = _shown(second.sha(hashed))

    def _state_facts(self) -> None:
        """Make the hash of what is fixed about the thread anew."""
        info, is_fork = self.info, self.info["parent"] is not None
        fixed = list(info.values())
        carried = [] if is_fork else [[*part[:4], part[4][7:]] for part in self.past[:-1]]
        facts = [*fixed[:3], info["source"].get("within"), self.header["source"][7:], *fixed[4:10]]
        digest = second.sha([*facts, self.header["shared_entries"], carried])
        info["facts_hash"] = self.past[-1][4] = _shown(digest)

    def _keep_cursor(self) -> None:
        """Let the entry that kept the hash of the cursor keep it as it is now."""
        last = self.entries[-1] if self.entries else None
        newest = self.steps[-1]["step"] if self.steps else None
        links = {one["hash"] for one in self.entries[-1:]}
        kept = newest
        if last and last["cursor_hash"] and (newest is None or newest["ledger_hash"] not in links):
            kept = last
        if kept is not None:
            kept["cursor_hash"] = _shown(second.cursor_hash(self.cursor))

    def _chain_starts(self, link: bytes, column: int, number: int) -> bytes:
        for start, part in zip(self.starts, self.past, strict=False):
            link = chained(link, second.raw(part[4])) if start[column] == number else link
        return link

    def _chain_decisions(self, facts_before: list[bytes]) -> None:
        old, link = b"", b""
        for n, entry in enumerate([None, *self.entries]):
            if entry is not None:
                old = second.raw(entry["hash"])
                entry["prev_hash"] = _shown(link)
                link = second.ledger_hash(_raw(entry))
                entry["hash"] = _shown(link)
            self.links[_shown(old)] = link
            for start, part, facts in zip(self.starts, self.past, facts_before, strict=False):
                if start[2] == n:
                    old, link = chained(old, facts), chained(link, second.raw(part[4]))
                    self.links[_shown(old)] = link
        self.cursor["ledger_hash"] = _shown(link)

    def _chain_steps(self) -> None:
        values = self._defaults()
        record = link = self._chain_starts(b"", 0, -1)
        tainted: dict[str, Taint] = {}
        for line in self.steps:
            step = line["step"]
            step["tainted"] = _follow_taint(step, line["records"], tainted)
            for row in line["records"]:
                record = self._record(row, values, record)
            step["state_hash"] = _shown(state_hash({name: channel_hash(one) for name, one in values.items()}))
            step["ledger_hash"] = _shown(self.links[step["ledger_hash"]])
            link = second.checkpoint_hash(_raw(step), link, record)
            step["checkpoint_hash"] = _shown(link)
            if "snapshot" in line:
                state = {name: thaw(value) for name, value in values.items()}
                line["snapshot"] = b64encode(b"o" + msgspec.json.encode(state)).decode()
            record, link = (self._chain_starts(one, 0, step["step"]) for one in (record, link))
        self.cursor |= {"last_record_hash": _shown(record), "checkpoint_hash": _shown(link)}

    def _defaults(self) -> dict[str, Any]:
        """What channels hold before the first step: the graph leaves out what is private."""
        channels = [channel for line in self.graphs[:1] for channel in line["graph"]["channels"]]
        first = self.steps[0] if self.steps else {"records": []}
        given = {row["channel"] for row in first["records"]}
        texts = second.snapshot_of(b64decode(first["snapshot"]), {}) if "snapshot" in first else {}
        values = {name: msgspec.json.decode(text) for name, text in texts.items() if name not in given}
        return {channel["name"]: channel["default"] for channel in channels} | values

    def _record(self, row: Document, values: dict[str, Any], link: bytes) -> bytes:
        effect = Effect.of(row_of(UpdateRecord, row))
        before = values.get(row["channel"])
        after = values[row["channel"]] = next_value(effect, before)
        row["previous_hash"], row["next_hash"] = _shown(channel_hash(before)), _shown(channel_hash(after))
        row["update_hash"] = _shown(item_hash(update_of(effect, before)))
        row["prev_record_hash"] = _shown(link)
        row["record_hash"] = _shown(second.record_hash(_raw(row)))
        return second.raw(row["record_hash"])


def _without_defaults(lineage: Document | None) -> Document | None:
    """A lineage as an export has it: what is empty or false is left out."""
    return (
        {name: value for name, value in lineage.items() if value or name in ("step", "node")}
        if lineage
        else None
    )


def _follow_taint(step: Document, rows: list[Document], tainted: dict[str, Taint]) -> list[Document]:
    """Let the records and the checkpoint of a step say the taint that follows from their lineages."""
    before, now = dict(tainted), set(tainted)
    read = {name.partition(".")[0] for name in step["read"]} & before.keys()
    for row in rows:
        lineage = row["lineage"] = _without_defaults(row["lineage"])
        if lineage is not None and not lineage.get("cleared"):
            if row["source"] == "node" and not row["path"] and step["read"]:
                wanted = read
            else:
                wanted = set(lineage.get("channels", ())) & before.keys()
            if wanted != set(lineage.get("channels", ())):
                row["lineage"] = _without_defaults({**lineage, "channels": sorted(wanted)})
            now.add(row["channel"])
        row["tainted"] = row["channel"] in now and not (lineage or {}).get("cleared")
    written = [(row["channel"], msgspec.convert(row["lineage"], Lineage | None)) for row in rows]
    after = spread(before, written)
    tainted.clear()
    tainted.update(after)
    return [msgspec.structs.asdict(taint) for taint in after.values()]
