"""A batch that survives crashes: one thread per file, and a list of the files that are done.

    python sample_graphs/batch.py notes/ --model ollama/llama3.2      every .txt of a folder
    hitl-tui run sample_graphs/batch.py --input file_path=notes/a.txt    one of them, on screen

Within a file, the checkpoints keep what was paid for: a thread continues at the step that failed.
Across files, done.json does: files listed there are not opened again. Without --model a script answers.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    HitlError,
    InputField,
    RetryPolicy,
    ScriptedModel,
    SQLiteCheckpointer,
    StateGraph,
    WorkflowState,
)
from hitl_tui.engine.log.store import Store


def read_file(state: WorkflowState) -> dict[str, Any]:
    """Read the text; from here on the file can change or disappear."""
    return {"file_content": Path(state["file_path"]).read_text(encoding="utf-8")}


def call_llm(state: WorkflowState, config: Any) -> dict[str, Any]:
    """Summarise the text; this is the step that costs money."""
    return {
        "llm_result": config.agents["reader"].chat(f"Summarise in one sentence:\n{state['file_content']}")
    }


def save_result(state: WorkflowState) -> dict[str, Any]:
    """Write the answer beside the source; doing it twice has the same effect."""
    target = Path(state["file_path"]).with_suffix(".summary")
    target.write_text(state["llm_result"], encoding="utf-8")
    return {"saved_to": str(target)}


def build(
    model: str | None = None, api_base: str | None = None, checkpointer: Store | None = None
) -> GraphRunner:
    """Return the graph for one file."""
    server = {"api_base": api_base} if api_base else {}
    text = {"schema": {"type": "string"}}
    return (
        StateGraph(
            {
                "file_path": Channel("", **text),
                "file_content": Channel("", **text),
                "llm_result": Channel("", **text),
                "saved_to": Channel("", **text),
            },
            name="batch",
        )
        .add_node("read_file", read_file, reads=["file_path"], writes=["file_content"])
        .add_node("call_llm", call_llm, retry=RetryPolicy(max_attempts=2), writes=["llm_result"])
        .add_node("save_result", save_result, writes=["saved_to"])
        .add_edge(START, "read_file")
        .add_edge("read_file", "call_llm")
        .add_edge("call_llm", "save_result")
        .add_edge("save_result", END)
        .compile(
            checkpointer=checkpointer,
            agents={"reader": Agent("reader", model or ScriptedModel(rehearse), **server)},
            inputs=[InputField("file_path", "file_path", "Which file?", "notes/a.txt")],
            output="llm_result",
        )
    )


def rehearse(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the script's answer: how long the text is, and how it begins."""
    words = messages[-1]["content"].partition("\n")[2].split()
    return f"{len(words)} words, beginning with “{' '.join(words[:5])}”."


def run_folder(folder: Path, runner: GraphRunner) -> list[str]:
    """Run every file that isn't done yet; return the names of those that failed."""
    done_file = folder / "done.json"
    done = set(json.loads(done_file.read_text())) if done_file.exists() else set()
    failed = []
    for file in sorted(folder.glob("*.txt")):
        if file.name in done:
            continue
        thread = f"file-{file.stem}"
        known = runner.store is not None and runner.store.info(thread) is not None
        try:
            runner.invoke(None if known else {"file_path": str(file)}, thread_id=thread)
        except HitlError as error:
            print(f"{file.name}: {error}, will be tried again next time")
            failed.append(file.name)
            continue
        done.add(file.name)
        replacement = done_file.with_suffix(".new")
        replacement.write_text(json.dumps(sorted(done)))
        os.replace(replacement, done_file)
        print(f"{file.name}: done")
    return failed


def main() -> int:
    """Run a folder; return 1 if a file failed."""
    parser = argparse.ArgumentParser(description="Summarise every .txt of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="any model litellm knows; a script answers without it")
    arguments = parser.parse_args()
    store = SQLiteCheckpointer(arguments.folder / "threads.db")
    return int(bool(run_folder(arguments.folder, build(arguments.model, checkpointer=store))))


if __name__ == "__main__":
    raise SystemExit(main())
