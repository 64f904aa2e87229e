# fmt: off
"""Verify an export from docs/spec/verify.md alone.  Usage: python second_verifier.py EXPORT [ANCHORS]"""

import base64, json, re, sys, zlib
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
# ruff: noqa: B008, B020, E401, I001, PLR1704, B905, E501
PAGE = (Path(__file__).parents[2] / "docs/spec/verify.md").read_text()
TABLES = dict(re.findall(r"^([A-Z]+): (.+)$", PAGE.partition("```text\n")[2].partition("```")[0], re.M))
HEADER, INFO, STEP, RECORD, ENTRY, CURSOR, UNCHAINED, FRESH = TABLES.values()
UNDER_WAY = (["pending", ""], ["running", ""], ["waiting", "paused"])
BINDS = ("request", "rebound", "vote", "handed_over", "escalated")
ENDS = ("answer", "timeout", "withdrawn", "reopened")
TYPES = dict.fromkeys(["branches", "pending", "past", "inside", "missing"], list) | dict.fromkeys(["n", "step", "at", "version", "updated_at"], int)

def check(holds, what):
    if not holds:
        raise ValueError(what)

def number(x, canonical):
    """A float as text."""
    check(abs(x) < float("inf"), "a number is too large")
    exact = Decimal(repr(x)).normalize()
    if x == 0:
        return "0" if canonical else str(x)
    if (-6 if canonical else -5) <= exact.adjusted() < (21 if canonical else 16):
        text = format(exact, "f")
        return text if canonical or "." in text else text + ".0"
    return format(exact, "e").replace("+", "+" if canonical else "")

def written(value, canonical=False, depth=0):
    """JSON without white space, as text; canonical, or with the keys in the order that they have."""
    check(depth < 128, "nested too deep")
    if isinstance(value, float):
        return number(value, canonical)
    if isinstance(value, list | tuple):
        return "[" + ",".join(written(item, canonical, depth + 1) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be")) if canonical else value
        pairs = (f"{written(name)}:{written(value[name], canonical, depth + 1)}" for name in names)
        return "{" + ",".join(pairs) + "}"
    return json.dumps(value, ensure_ascii=False)

def sha(*parts, canonical=False):
    """The SHA-256 of bytes, and of the JSON of what is not bytes."""
    return sha256(b"".join(p if isinstance(p, bytes) else written(p, canonical).encode() for p in parts)).digest()

def item_hash(value):
    return sha(value, canonical=True)
def channel_hash(value, digest=sha(b"list")):
    """The hash of a value; a list is chained to `digest`, that of the list before it."""
    for item in value if isinstance(value, list) else ():
        digest = sha(digest, item_hash(item))
    return digest if isinstance(value, list) else item_hash(value)

def state_hash(digests):
    return item_hash({name: "sha256:" + digest.hex() for name, digest in digests.items()})

def parse(data):
    pairs = json.loads(data, parse_constant=lambda name: check(False, f"{name} is no JSON"))
    check(written(pairs).encode() == data, "not written as an export is")
    return pairs

def raw(shown):
    check(re.fullmatch("(sha256:[0-9a-f]{64})?", shown), "no hash")
    return bytes.fromhex(shown[7:])

def row(given, names, optional=()):
    """A row whose fields are all there, in their order, with its hashes as bytes."""
    wanted = [name for name in names.split() if name in given or name not in optional]
    check(list(given) == wanted, f"the fields {', '.join(given)}")
    for name in set(given) - {"update", "result", "data", "goal", "constraints"}:
        check(type(given[name]) is not int or -(1 << 63) <= given[name] < 1 << 63, f"{name} beyond 64 bits")
        check(name not in TYPES or type(given[name]) is TYPES[name], f"the type of {name}")
    return {name: raw(v) if name.endswith("hash") or name in ("seen", "hash") else v for name, v in given.items()}

def own_part(holder, name="thread"):
    """A request, a branch or a child with the last part of the name of its thread."""
    return holder and {**holder, name: holder[name].rpartition("/")[2]}

def record_hash(given):
    facts = [given[name] for name in RECORD.split()[:12] + RECORD.split()[16:20]]
    more = [given["lineage"]] if given["lineage"] is not None else []
    more += [b"result"] if "result" in given else []
    more += [[given["patched"], [given.get(name) for name in given["patched"]]]] if "patched" in given else []
    more += [given["made_by"]] if given["made_by"] != "node" else []
    return sha(*(given[n] for n in ("prev_record_hash", "previous_hash", "update_hash", "next_hash")), facts, *more)

def checkpoint_hash(step, link, record):
    step = {**step, "branches": [own_part(branch) for branch in step["branches"]]}
    names = STEP.split()[: -4 if step["origin"] is None else -3]
    facts = [step[name] for name in names if name != "state_hash"]
    return sha(link, record, step["ledger_hash"], step["state_hash"], step["cursor_hash"], facts)

def ledger_hash(entry):
    names = ENTRY.split()[:5] + ENTRY.split()[12:14] + ENTRY.split()[5:10] + ENTRY.split()[14:]
    facts = [entry[name].hex() if isinstance(entry[name], bytes) else entry[name] for name in names]
    return sha(entry["prev_hash"], facts, canonical=True)

def cursor_hash(cursor):
    branches = [{**branch, "child": own_part(branch["child"], "thread_id")} for branch in cursor["branches"]]
    rest = [cursor[name] for name in CURSOR.split() if name not in UNCHAINED.split()]
    standing = UNDER_WAY[1] if (now := [cursor["status"], cursor["reason"]]) in UNDER_WAY else now
    return sha([standing, [own_part(request) for request in cursor["pending"]], branches, rest])

def snapshot_of(stored, before):
    """The JSON text of each channel in a stored snapshot, given those of the snapshot before it."""
    if stored[:1] == b"o":
        return {name: written(value).encode() for name, value in json.loads(stored[1:]).items()}
    data, texts = stored[5:], {}
    check(stored[:1] in (b"f", b"c") and stored[1:5] == zlib.crc32(data).to_bytes(4), "a snapshot")
    data = zlib.decompress(data) if stored[:1] == b"c" else data
    place = 4 + int.from_bytes(data[:4])
    head = json.loads(data[4:place])
    for name, size in head["sizes"].items():
        own, place = data[place : place + size], place + size
        if name in head["tails"]:
            own = b"[" + b",".join(filter(None, (before[name][1:-1], own[1:-1]))) + b"]"
        elif name in head["shared"]:
            at, pieces = 0, []
            for start, stop, length in head["shared"][name]:
                pieces += [before[name][start:stop], own[at : at + length]]
                at += length
            own = b"".join(pieces)
        texts[name] = own
    return texts

class Thread:
    """One thread of an export."""

    def __init__(self, line):
        self.header = header = row(parse(line), HEADER)
        self.info, self.past = info, past = row(header["info"], INFO), header["past"]
        name, self.starts = info["thread_id"], [[-1, 0, 0], *(part[1:4] for part in past)]
        check(header["left_out"] == [] and {len(part) for part in past} == {5}, "private values were left out")
        check(line.startswith(b'{"format":"hitl-tui thread","version":9,'), "the version")
        for one, two in pairwise(self.starts):
            check(all(type(b) is int and a <= b for a, b in zip(one, two, strict=True)), "the parts")
        fixed, is_fork = list(info.values()), info["parent"] is not None
        carried = [] if is_fork else [[*part[:4], part[4][7:]] for part in past[:-1]]
        facts = [*fixed[:3], info["source"].get("within"), raw(header["source"]).hex(), *fixed[4:10]]
        facts = sha([*facts, header["shared_entries"], carried])
        check((facts, name) == (info["facts_hash"], past[-1][0]) and facts == raw(past[-1][4]), "facts")
        check([(k, type(v)) for k, v in info["source"].items()] in ([], [("within", list)]), "the source")
        ends = past[-2][1:3] if is_fork else [header["shared_entries"]]
        check(ends == ([info["fork_step"], info["fork_seq"]] if is_fork else [0]), "the fork")
        self.graphs, self.steps, self.entries, self.named, self.stage = [], [], [], set(), 0
        self.digests, self.written, self.texts = {}, set(), {}

    def started(self, links, column, number):
        """Links with those that the parts add which begin after a step (0) or a decision (2)."""
        for start, part in zip(self.starts, self.past, strict=False):
            links = [*links, sha(links[-1], raw(part[4]))] if start[column] == number else links
        return links

    def check_writers(self, rows, column, number):
        writer = next(part[0] for part in self.past if number <= part[column])
        check({row["thread_id"] for row in rows} == {writer}, f"the thread that wrote row {number}")

    def add(self, line):
        """A line between the first and the last."""
        stage = [line.startswith(b'{"%s":' % kind) for kind in (b"graph", b"step", b"decision")].index(True)
        check(stage >= self.stage, "the order of lines")
        self.stage, row_of = stage, parse if stage else lambda text: sha256(text[9:-1]).hexdigest()
        (self.graphs, self.steps, self.entries)[stage].append(row_of(line))

    def apply(self, record):
        """One record: how it moves the hash of its channel on."""
        name, edits, update = record["channel"], record.get("patched", ()), record["update"]
        digest, after = self.digests.get(name, record["previous_hash"]), record["next_hash"]
        check(digest == record["previous_hash"], f"previous_hash of record {record['seq']}")
        check("update" in edits or item_hash(update) == record["update_hash"], f"update of record {record['seq']}")
        kind = "overwrite" if record["op"] == "set" else record["reducer"]
        if "result" in record and "result" not in edits:
            after = channel_hash(record["result"])
        elif kind in ("overwrite", "last") and "update" not in edits:
            after = channel_hash(update)
        elif kind in ("append", "extend") and "update" not in edits:
            start = sha(b"list") if digest == item_hash(None) else digest
            after = channel_hash([update] if kind == "append" else update, start)
        check(after == record["next_hash"], f"next_hash of record {record['seq']}")
        self.digests[name] = after
        self.written.add(name)

    def check_state(self, step, stored, is_new_base):
        """The state after a step, and the snapshot of it."""
        if stored != b"":
            self.texts = snapshot_of(base64.b64decode(stored, validate=True), self.texts)
            digests = {name: channel_hash(json.loads(value)) for name, value in self.texts.items()}
            if is_new_base:
                self.digests = {name: one for name, one in self.digests.items() if name in digests}
                self.written &= digests.keys()
            check(self.written <= digests.keys(), "a snapshot lacks a channel")
            check(all(digests.get(name, one) == one for name, one in self.digests.items()), "a snapshot")
            check(state_hash(digests) == step["state_hash"], "the state of a snapshot")
            self.digests.update(digests)
        same = state_hash(self.digests) == step["state_hash"]
        check(same or not self.complete, f"state_hash of step {step['step']}")
        self.complete = same

    def check_step(self, line, number, seq, record, link):
        step, records = row(line["step"], STEP), [row(r, RECORD, ("result", "patched")) for r in line["records"]]
        check((step["step"], step["parent_step"], step["first_seq"]) == (number, number - 1, seq + 1), "a step")
        for seq, one in enumerate(records, seq + 1):
            check((one["seq"], one["step"], one["prev_record_hash"]) == (seq, number, record), "a record")
            record = record_hash(one)
            check(record == one["record_hash"], f"record {seq}")
            self.apply(one)
        check(all(step[name] == one[name] for one in records[:1] for name in ("invocation", "node", "at")), "a step")
        self.check_writers([step, *records], 1, number)
        check(checkpoint_hash(step, link, record) == step["checkpoint_hash"], f"step {number}")
        check([*line] == ["step", "records", "snapshot"][: len(line)] and step["last_seq"] == seq and step["ledger_hash"] in self.stood, f"step {number}")
        check(all(part[2] == seq for part in self.past if part[1] == number), "the parts")
        check(number or not self.info["graph_digest"] or "snapshot" in line, "step 0 has no snapshot")
        self.check_state(step, line.get("snapshot", b""), number in self.is_new_base)
        self.named |= {branch["thread"] for branch in step["branches"]} - {""}
        return seq, record, step

    def end(self, given):
        """The last line: check all of the thread."""
        cursor, links, inputs, n = row(given, CURSOR), self.started([b""], 2, 0), {}, 0
        self.after, self.decided, self.complete = {-1: self.started([b""], 0, -1)}, {0: links}, False
        self.is_new_base = {e["decision"]["step"] for e in self.entries if e["decision"]["kind"] == "channels"}
        entries = [row(line["decision"], ENTRY) for line in self.entries]
        for n, entry in enumerate(entries, 1):
            check((entry["n"], entry["prev_hash"], entry["hash"]) == (n, links[-1], ledger_hash(entry)), f"entry {n}")
            self.check_writers([entry], 3, n)
            links = self.started([entry["hash"]], 2, n)
            self.decided[n] = links
            if entry["kind"] == "input":
                inputs[entry["step"]] = entry["data"]
        self.stood = set().union(*self.decided.values()) - {b""}
        seq, step, record, link = 0, None, *self.after[-1][-1:] * 2
        for number, line in enumerate(self.steps):
            seq, record, step = self.check_step(line, number, seq, record, link)
            self.after[number] = self.started([step["checkpoint_hash"]], 0, number)
            record, link = self.started([record], 0, number)[-1], self.after[number][-1]
        counts = [len(self.steps) - 1, seq, n]
        check(written([cursor[c] for c in ("head", "last_seq", "ledger_n")]) == written(counts), "a count")
        check(self.past[-1][1:4] == counts and cursor["thread_id"] == self.info["thread_id"], "a count")
        check([cursor[n] for n in CURSOR.split()[4:8:3]] == [record, links[-1]], "a hash of the cursor")
        kept = entries[-1]["cursor_hash"] if entries else sha(json.loads(FRESH % self.info["created_at"]))
        if step and (not entries or not kept or step["ledger_hash"] in links):
            kept = step["cursor_hash"]
        check(cursor["checkpoint_hash"] == link and cursor_hash(cursor) == kept, "the cursor")
        for request in cursor["pending"]:
            about = [e for e in entries if e["request_id"] == request["id"] and e["kind"] in BINDS + ENDS]
            hashed = sha(own_part(request) if request["thread"] else request)
            check(about and about[-1]["kind"] in BINDS and about[-1]["pending_hash"] == hashed, "a request")
        now = {"goal": None, "constraints": None, "context": {}, "private": []}
        for data in (data for at, data in inputs.items() if at <= counts[0]):
            now |= {name: data[name] for name in ("goal", "constraints") if name in data}
            now |= {"context": data["context"], "private": data.get("private", [])} if "context" in data else {}
        is_now = [cursor[name] for name in ("goal", "constraints", "context", "private_context")]
        check(not inputs or item_hash(list(now.values())) == item_hash(is_now), "the inputs")
        graphs = dict.fromkeys((self.info["graph_digest"], cursor["graph"]))
        check(self.graphs == [*filter(None, graphs)], "the graphs")
        self.named |= {request["thread"] for request in cursor["pending"]} - {""}
        self.named |= {branch["child"]["thread_id"] for branch in cursor["branches"] if branch["child"]}

def check_export(data, anchors=()):
    """Check the bytes of an export, and anchors of its threads; raises an error where it was changed."""
    *lines, rest = data.split(b"\n")
    check(not rest and lines, "the end")
    threads, thread, digest = {}, None, sha256()
    for number, line in enumerate(lines):
        if thread is None:
            thread = Thread(line)
            first = next(iter(threads.values()), thread)
            places = first.header["inside"]
            if threads:
                (name, of), owner = places[len(threads) - 1], thread.info["owner"]["thread_id"]
                check(name == thread.info["thread_id"] and owner in [p[0] for p in threads[of].past], "a place")
                check(name not in threads and not thread.header["inside"] + thread.header["missing"], "a place")
        elif line.startswith(b'{"cursor":'):
            given, sealed = parse(line)["cursor"], digest.copy()
            sealed.update(written(given).encode())
            last = {"cursor": given, "lines": number, "sha256": sealed.hexdigest()}
            check(written(last).encode() == line, "the last line of a thread")
            thread.end(given)
            threads[thread.info["thread_id"]], thread = thread, None
        else:
            thread.add(line)
        digest.update(line + b"\n")
    check(thread is None and [*threads][1:] == [place[0] for place in places], "the threads")
    known = [(anchor, threads[anchor["thread"]]) for anchor in anchors if anchor["thread"] in threads]
    check(known or not anchors, "the anchors are about other threads")
    for anchor, thread in known:
        links = thread.after.get(anchor["step"], ()), thread.decided.get(anchor["decision"], ())
        check(all(raw(anchor[n]) in at for n, at in zip(("checkpoint_hash", "ledger_hash"), links)), "an anchor")
    check(sorted(set().union(*(t.named for t in threads.values())) - {*threads}) == first.header["missing"], "missing")

if __name__ == "__main__":
    try:
        check_export(Path(sys.argv[1]).read_bytes(), [json.loads(line) for name in sys.argv[2:] for line in Path(name).read_text().splitlines()])
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print("ok")
