"""Command line: one file for a family of commands, loaded when one of them is called."""
