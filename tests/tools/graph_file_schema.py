"""Writes the published JSON Schemas of graph files and of scripts for the stage.

python -m tests.tools.graph_file_schema
"""

from __future__ import annotations

from hitl_tui.loading.graphfile.schema import SCHEMA_FILE, schema_text
from hitl_tui.loading.stage_file import SCHEMA_FILE as STAGE_SCHEMA_FILE
from hitl_tui.loading.stage_file import stage_schema_text

if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    STAGE_SCHEMA_FILE.write_text(stage_schema_text(), encoding="utf-8")
