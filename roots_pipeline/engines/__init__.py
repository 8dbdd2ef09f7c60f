"""Engines run tasks; the stages never know which one. Only the `__main__` of a package imports from here."""
