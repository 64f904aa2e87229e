"""A graph: how it is built and checked, and as it runs."""
