"""Running one node: its attempts, its branches, and what it reports while it runs."""
