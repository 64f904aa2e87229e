"""The engine: runs a graph over a log, and knows no screen, no model and no file.

Its packages build on one another in this order, each on those before it alone: log, state, graph, thread,
nodes, commands, run, audit, and the runner.
"""
