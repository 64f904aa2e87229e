"""Decide and change"""
