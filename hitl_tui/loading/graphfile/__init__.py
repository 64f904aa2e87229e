"""Graphs written in TOML: what a file may hold, reading it strictly, and building the graph of it."""
