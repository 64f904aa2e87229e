"""Check and export"""
