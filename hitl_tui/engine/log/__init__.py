"""Data types of the log: records of a thread, events of a run, and the interface of a store."""
