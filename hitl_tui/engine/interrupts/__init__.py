"""Asking humans: the requests that stop a run, and which answers they take."""
