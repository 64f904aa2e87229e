"""Graph files in TOML: their format, a strict reader, and the builder of their graphs."""
