"""One thread, open for reading and writing: its cursor, state, agents and commits."""
