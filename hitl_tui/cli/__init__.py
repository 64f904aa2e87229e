"""The command line: one file for a family of commands, loaded when one of it is called."""
