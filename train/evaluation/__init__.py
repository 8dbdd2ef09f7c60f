"""Scores of a trained model on tasks from files, with what several texts begin with computed once."""
