"""The engine: runs a graph on a log. It knows no screen, no model and no file.

Each of its packages imports only from those before it: log, state, graph, thread, nodes, commands, run,
audit, and the runner.
"""
