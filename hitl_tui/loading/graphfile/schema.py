"""JSON Schema of graph files, for editors; published beside the package's code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA_FILE = Path(__file__).resolve().parent.parent / "graph-file.schema.json"


def graph_file_schema() -> dict[str, Any]:
    """Return the schema, made from the classes that files are decoded to."""
    import msgspec

    from hitl_tui.loading.graphfile.shape import GraphFile
    from hitl_tui.loading.graphfile.workflows import WORKFLOWS

    schema = msgspec.json.schema(GraphFile)
    tables = schema["$defs"]
    tables["GraphTable"]["properties"]["workflow"]["examples"] = list(WORKFLOWS)
    tables["NodeTable"]["oneOf"] = [{"required": [kind]} for kind in ("agent", "function", "gate")]
    tables["RouteTable"]["oneOf"] = [{"required": [kind]} for kind in ("channel", "function")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hitl-tui graph file",
        **schema,
    }


def schema_text() -> str:
    """Return the published text of the schema."""
    return json.dumps(graph_file_schema(), indent=2, ensure_ascii=False) + "\n"
