"""The run loop, and the nodes and subgraphs it works through."""
