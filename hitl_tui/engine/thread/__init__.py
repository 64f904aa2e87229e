"""One thread, open for reading and writing: its cursor, its state, its agents and its commits."""
