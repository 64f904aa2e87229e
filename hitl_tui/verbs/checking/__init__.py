"""Check and carry"""
