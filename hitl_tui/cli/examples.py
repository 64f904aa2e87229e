"""The examples that end each command's `--help`."""

from __future__ import annotations

EXAMPLES = {
    "demo": ["hitl-tui demo", 'hitl-tui demo --task "Explain recursion" --theme presenter'],
    "run": [
        "hitl-tui run review --input task=Hills",
        "hitl-tui run flow.py --model anthropic/claude-sonnet-4-5 --thread r1",
        "hitl-tui run flow.toml --input @first.json --headless",
    ],
    "schema": ["hitl-tui schema json > hitl-tui.schema.json"],
    "new": ["hitl-tui new advisor my.toml && hitl-tui run my.toml"],
    "resume": ["hitl-tui resume", "hitl-tui resume r1 --headless"],
    "step": ["hitl-tui step r1"],
    "pause": ['hitl-tui pause r1 --note "lunch"'],
    "extend": ["hitl-tui extend r1 max_iterations=50", "hitl-tui extend r1 max_cost_usd=none"],
    "cancel": ['hitl-tui cancel r1 --note "no longer needed"'],
    "rollback": ["hitl-tui rollback trip --dry-run", 'hitl-tui rollback trip --yes --note "not needed"'],
    "approve": ['hitl-tui approve r1 --note "reads well" --run'],
    "revise": ['hitl-tui revise r1 --note "shorter" --run'],
    "answer": [
        'hitl-tui answer r1 0553166a3c95 revise --note "shorter" --step 2',
        "hitl-tui answer o1 461011164b27 --set item=tea --set amount=2 --step 0",
        "hitl-tui answer o1 461011164b27 --value @order.json --step 0",
    ],
    "update-state": ['hitl-tui update-state r1 draft="In short: yes." approved=true --note "mine"'],
    "fork": [
        "hitl-tui fork r1@4 r1-b",
        'hitl-tui fork r1@4 r1-c draft="Another beginning." --agent writer.model=ollama/llama3.2',
    ],
    "agents": ["hitl-tui agents r1", "hitl-tui agents r1 writer.temperature=0"],
    "declassify": ['hitl-tui declassify w1 mail --reason "read it, no instructions in it"'],
    "threads": ["hitl-tui threads", "hitl-tui threads --waiting", "hitl-tui threads report --limit 5"],
    "show": ["hitl-tui show r1", "hitl-tui show r1@2", "hitl-tui show r1 --channel draft > draft.txt"],
    "log": ["hitl-tui log r1", "hitl-tui log r1 --before 100 --limit 20"],
    "diff": ["hitl-tui diff r1@1 r1", "hitl-tui diff r1 r1-b"],
    "blame": ["hitl-tui blame r1 draft", "hitl-tui blame r1@4 plan.items.0"],
    "cost": ["hitl-tui cost r1"],
    "taint": ["hitl-tui taint w1", "hitl-tui taint w1 mail"],
    "graph": [
        "hitl-tui graph review",
        "hitl-tui graph --thread r1 --format svg > way.svg",
    ],
    "verify": [
        "hitl-tui verify r1",
        "hitl-tui verify r1 --strict",
        "hitl-tui verify r1 --anchor anchors.jsonl",
    ],
    "anchor": ["hitl-tui anchor r1 >> anchors.jsonl", "hitl-tui anchor r1 | ssh desk 'cat >> anchors.jsonl'"],
    "replay": ["hitl-tui replay r1"],
    "export": ["hitl-tui export r1 r1.jsonl", "hitl-tui export r1 | ssh desk hitl-tui import -"],
    "import": ["hitl-tui import r1.jsonl", "hitl-tui import r1.jsonl --thread r2 --store files:threads"],
    "themes": ["hitl-tui themes"],
    "keys": ["hitl-tui keys"],
    "config": ["hitl-tui config"],
    "doctor": ["hitl-tui doctor"],
    "completion": ["hitl-tui completion bash", "hitl-tui completion fish"],
}


def examples(command: str) -> str:
    """The last paragraph of a command's help."""
    lines = EXAMPLES[command]
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", heading, *(f"  {line}" for line in lines)])
