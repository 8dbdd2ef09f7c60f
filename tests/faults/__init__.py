"""Disturb runs in every way that a computer knows, and compare the bytes that they end with; see `__main__`."""
