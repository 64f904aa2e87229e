"""The log as data: what is written down of a thread and told of a run, and what a store keeps."""
