"""The threads below a thread, in which its subgraphs run."""
