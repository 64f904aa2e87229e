"""Mutations of exports, and what the two verifiers say of each.

Run `python -m tests.stores.export_mutations [COUNT]` for the full walk: COUNT mutations of each of the five
exports, by default 10,000, and COUNT / 25 in which all chains were computed anew.  It prints a table and
every difference.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from hashlib import sha256
from typing import Any

import msgspec

from hitl_tui import END, START, Artifact, Channel, NodeResult, StateGraph
from hitl_tui.engine.audit.anchor import Anchor
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.log.records import LedgerEntry, UpdateRecord
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.thread.hashes import ledger_hash, record_hash
from hitl_tui.errors import HitlError
from hitl_tui.stores import MemoryCheckpointer
from hitl_tui.stores.files.json import hash_text, row_of
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.engine.audit import rich
from tests.stores.forged_exports import altered, rebuilt
from tests.support.second_verifier import check_export

Lines = list[bytes]
NAMES = ("waits", "undone", "bare", "carried", "asked")


def asking(store: MemoryCheckpointer) -> None:
    """A thread whose map has asked: one branch was answered, another waits; it keeps artifacts and floats."""

    def draft(_state: Any) -> NodeResult:
        report = Artifact("report.md", "text/markdown", "# Report\n")
        facts = {"é": 1e21, "deep": {"x": 1.5}}
        updates = {"sum": 0.1, "least": 1e-7, "tags": ["a", "b"], "facts": facts}
        return NodeResult(updates, artifacts=(report,))

    def ask(_state: Any, config: Any) -> dict[str, Any]:
        given = config.interrupt({"title": f"how much for {config.item}?"})
        return {
            "sum": 2,
            "tags": config.item,
            "facts": {"deep": {config.item: given}},
            "parts": [config.item],
        }

    channels = {
        "sum": Channel(0, reducer="sum"),
        "least": Channel(1, reducer="min"),
        "tags": Channel([], reducer="set_union"),
        "facts": Channel({}, reducer="merge_deep"),
        "parts": Channel(["x"], reducer="last_n(2)"),
        "items": Channel(["p", "q"], reducer="overwrite"),
    }
    made = (
        StateGraph(channels, name="asked")
        .add_node("draft", draft)
        .add_map("ask", over="items", node=ask)
        .add_edge(START, "draft")
        .add_edge("draft", "ask")
        .add_edge("ask", END)
        .compile(checkpointer=store)
    )
    given = {"context": {"tenant": "acme"}, "max_iterations": 9}
    made.invoke({"goal": "a sum"}, thread_id="asked", **given)
    for _ in range(2):
        request = made.open("asked").cursor.pending[0]
        made.answer("asked", request.id, "7", step=request.step, actor="ann")
    made.invoke(thread_id="asked")
    made.invoke({"items": ["r", "s"]}, thread_id="asked", **given)
    request = made.open("asked").cursor.pending[0]
    made.answer("asked", request.id, "8", step=request.step, actor="bob")


def exports() -> dict[str, Lines]:
    """The five exports, by the names of their threads."""
    store = MemoryCheckpointer()
    rich.fill(store)
    asking(store)
    return {name: list(export_thread(store, name, private=True)) for name in NAMES}


def sealed(lines: Lines) -> Lines:
    """The lines with true counts and checksums in the last line of each thread."""
    digest, made = sha256(), []
    for number, line in enumerate(lines):
        if line.startswith(b'{"cursor":'):
            document = msgspec.json.decode(line)
            whole = digest.copy()
            whole.update(msgspec.json.encode(document["cursor"]))
            line = encoded({**document, "lines": number, "sha256": whole.hexdigest()})  # noqa: PLW2901
        digest.update(line)
        made.append(line)
    return made


def encoded(document: Any) -> bytes:
    return msgspec.json.encode(document) + b"\n"


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a document, containers too."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*path, key))


def another(value: Any, chance: random.Random) -> Any:
    """Another value in place of one."""
    odd = [None, True, 0, -1, 1.0, 1 << 70, "", "x", [], {}, [None], {"a": 1}]
    if chance.random() < 0.25:
        return chance.choice([one for one in odd if type(one) is not type(value)])
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return chance.choice([value + 1, value - 1, -value or 1, float(value), value * 10 + 1])
    if isinstance(value, float):
        return chance.choice([value + 0.5, -value or 1.5, int(value), value * 3 or 1.0])
    if isinstance(value, str):
        if value.startswith("sha256:"):
            other = "0" if value[-1] != "0" else "1"
            return chance.choice(["", value.upper(), value[:-1] + other, value + " "])
        return chance.choice([value + "x", value[1:] or "y", value.upper() + "!", "t/" + value])
    if isinstance(value, list):
        return chance.choice([value[1:] or [1], [*value, None], [*value[::-1], 0], [value]])
    fewer = dict(list(value.items())[1:]) or {"n": 1}
    return chance.choice([{**value, "new": 1}, dict(reversed(value.items())), fewer])


def changed(document: Any, chance: random.Random) -> Any:
    """A document with another value, a key less or keys in another order at one place."""
    document = deepcopy(document)
    places = list(leaves(document))
    *path, key = chance.choice(places)
    holder = document
    for name in path:
        holder = holder[name]
    if isinstance(holder, dict) and chance.random() < 0.1:
        del holder[key]
    elif isinstance(holder, dict) and chance.random() < 0.05:
        holder[key] = holder.pop(key)
    else:
        holder[key] = another(holder[key], chance)
    return document


def raw(lines: Lines, chance: random.Random) -> Lines:
    """A change by somebody who knows nothing of the format."""
    data = bytearray(b"".join(lines))
    at = chance.randrange(len(data))
    match chance.randrange(4):
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at : at + chance.randrange(1, 9)]
        case 2:
            data[at:at] = bytes([chance.randrange(256)])
        case _:
            return moved(lines, chance)
    return bytes(data).splitlines(keepends=True) if b"\r" not in data else [bytes(data)]


def moved(lines: Lines, chance: random.Random) -> Lines:
    """A line less, twice, or in another place."""
    lines = list(lines)
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case _:
            lines[at], lines[to] = lines[to], lines[at]
    return lines


def resealed(lines: Lines, chance: random.Random) -> Lines:
    """A change with true checksums of the file."""
    if chance.random() < 0.1:
        return sealed(moved(lines, chance))
    at = chance.randrange(len(lines))
    line = lines[at]
    if chance.random() < 0.05:
        line = line.replace(b",", b", ", 1)
    else:
        document = changed(msgspec.json.decode(line), chance)
        line = encoded(document)
        if "cursor" not in document and b'"cursor"' in lines[at][:9]:
            return [*lines[:at], line, *lines[at + 1 :]]
    return sealed([*lines[:at], line, *lines[at + 1 :]])


def rehashed(lines: Lines, chance: random.Random) -> Lines:
    """A changed record or decision with its own hash made again, and true checksums of the file."""
    at = chance.choice([n for n, line in enumerate(lines) if line.startswith((b'{"step"', b'{"decision"'))])
    document = msgspec.json.decode(lines[at])
    try:
        if "decision" in document:
            row = changed(document["decision"], chance)
            row["hash"] = hash_text(ledger_hash(row_of(LedgerEntry, row)))
            document["decision"] = row
        elif document["records"]:
            place = chance.randrange(len(document["records"]))
            row = changed(document["records"][place], chance)
            row["record_hash"] = hash_text(record_hash(row_of(UpdateRecord, row)))
            document["records"][place] = row
    except Exception:
        return lines  # no row at all any more
    return sealed([*lines[:at], encoded(document), *lines[at + 1 :]])


CRASH = "an unexpected error"
KINDS: dict[str, Callable[[Lines, random.Random], Lines]] = {
    "raw": raw,
    "resealed": resealed,
    "rehashed": rehashed,
}


def mutations(lines: Lines, count: int, seed: int) -> Iterator[tuple[str, Lines]]:
    """So many mutations of an export, each other than it, with the kind of each."""
    chance = random.Random(seed)
    while count:
        kind = chance.choices(list(KINDS), (3, 6, 2))[0]
        try:
            mutant = KINDS[kind](lines, chance)
        except UnicodeEncodeError:
            continue
        if b"".join(mutant) != b"".join(lines):
            count -= 1
            yield kind, mutant


def verdicts(lines: Lines, anchors: Sequence[Anchor] = ()) -> tuple[str, str]:
    """What the product says of an export and what the second verifier does, "" for nothing wrong.

    Args:
        anchors: of the threads in it; those of other threads are passed over.
    """
    try:
        first, store = "", MemoryCheckpointer()
        root = import_thread(store, lines)
        report = verify_tree(store, root, anchors=anchors) if anchors else None
        if report and not report.ok:
            first = str(report.mismatches[0])
    except HitlError as error:
        first = error.message
    except Exception as error:
        first = f"{CRASH}: {error!r}"
    try:
        check_export(b"".join(lines), [msgspec.json.decode(str(anchor)) for anchor in anchors])
        second = ""
    except Exception as error:
        second = f"{type(error).__name__}: {error}"
    return first, second


COMMITS = {"version", "updated_at"}
UNDER_WAY = {("pending", ""), ("running", ""), ("waiting", "paused")}


def reason(lines: Lines, mutant: Lines) -> str:
    """Why no verifier finds a mutation, as docs/spec/verify.md says it; "" where there is no reason."""
    if len(lines) != len(mutant):
        return ""
    for line, other in zip(lines, mutant, strict=True):
        before, after = msgspec.json.decode(line), msgspec.json.decode(other)
        if "cursor" in before and "cursor" in after:
            one, two = before["cursor"], after["cursor"]
            differ = {name for name in one if one[name] != two[name]}
            if differ and differ <= COMMITS:
                return "a count of commits, or the time of the last one"
            standings = {(row["status"], row["reason"]) for row in (one, two)}
            if differ and differ <= {"status", "reason"} and standings <= UNDER_WAY:
                return "under way, paused and not yet started are the same"
        if line != other and "snapshot" in before and "snapshot" not in after:
            return "a snapshot that nothing needs"
        if line != other and "cursor" not in before and canonical(before) == canonical(after):
            return "the same value in another notation"
    return ""


def walk(name: str, lines: Lines, count: int, seed: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """The outcomes of so many mutations by their kind, and those that the verifiers see differently."""
    assert verdicts(lines) == ("", "")
    outcomes: Counter[tuple[str, str]] = Counter()
    differences = []
    for number, (kind, mutant) in enumerate(mutations(lines, count, seed)):
        first, second = verdicts(mutant)
        why = "" if first or second else reason(lines, mutant)
        if bool(first) != bool(second) or not (first or why) or first.startswith(CRASH):
            differences.append(f"{name} {kind} {number}: product {first!r}, second verifier {second!r}")
        outcomes[kind, why or "found"] += 1
    return outcomes, differences


def anchors_of_export(lines: Lines) -> list[Anchor]:
    """The anchors of all threads of an export, as they were noted before anybody changed it."""
    ends = [msgspec.json.decode(line)["cursor"] for line in lines if line.startswith(b'{"cursor":')]
    fields = ("thread_id", "head", "checkpoint_hash", "ledger_n", "ledger_hash")
    return [Anchor(*(end[name] for name in fields), at=0) for end in ends]


ALL_ANEW = "all chains were computed anew"


def walk_forged(name: str, lines: Lines, count: int, seed: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """The outcomes of so many forgeries in which all that follows from a changed value was computed anew.

    Without an anchor both verifiers find a forgery or neither does. With anchors both find it, or neither
    does because no chain covers the value.
    """
    documents, anchors = [msgspec.json.decode(line) for line in lines], anchors_of_export(lines)
    before = sealed([encoded(document) for document in rebuilt(documents, 0)])
    assert verdicts(before, anchors) == ("", "")
    chance, outcomes, differences = random.Random(seed), Counter[tuple[str, str]](), []
    while sum(outcomes.values()) < 2 * count:
        try:
            changed_documents, place = altered(documents, chance)
            forged = sealed([encoded(document) for document in rebuilt(changed_documents, place)])
        except Exception:
            continue  # no export is left
        if forged == before:
            continue  # what was changed follows from other values
        for kind, known in (("forged", ()), ("anchored", anchors)):
            first, second = verdicts(forged, known)
            why = "" if first or second else reason(before, forged) if known else ALL_ANEW
            if bool(first) != bool(second) or not (first or why) or first.startswith(CRASH):
                number = sum(outcomes.values())
                differences.append(f"{name} {kind} {number}: product {first!r}, second verifier {second!r}")
            outcomes[kind, why or "found"] += 1
    return outcomes, differences


def main() -> None:
    """The full walk."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    total: list[str] = []
    for name, lines in exports().items():
        outcomes, differences = walk(name, lines, count, 1)
        forged, more = walk_forged(name, lines, count // 25, 1)
        outcomes += forged
        total += [*differences, *more]
        for (kind, outcome), number in sorted(outcomes.items()):
            print(f"{name:8} {kind:9} {number:6}  {outcome}", flush=True)
    print(f"{len(total)} differences", *total[:40], sep="\n")


if __name__ == "__main__":
    main()
