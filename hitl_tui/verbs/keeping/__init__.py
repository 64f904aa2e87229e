"""Keep and delete"""
