"""Undoing what a thread did outside of it, last one first."""
