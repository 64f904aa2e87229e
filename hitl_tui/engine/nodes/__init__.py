"""The run of one node: its attempts, its branches, and what it tells meanwhile."""
