"""Start and run"""
