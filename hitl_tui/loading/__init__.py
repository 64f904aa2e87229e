"""Loads graphs and settings from names and files; its modules are imported only when they are needed."""
