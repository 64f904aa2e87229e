"""Writes the published JSON Schema of graph files: `python -m tests.tools.graph_file_schema`."""

from __future__ import annotations

from hitl_tui.loading.graphfile.schema import SCHEMA_FILE, schema_text

if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
