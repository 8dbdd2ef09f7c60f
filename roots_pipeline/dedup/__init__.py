"""Duplicates: stages that let documents meet and keep exactly one of each group."""
