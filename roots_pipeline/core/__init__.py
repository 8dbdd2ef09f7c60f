"""What all four packages share: documents, stages, tasks, storage, manifests, recipes, errors, progress.

Imports point here and never out of here, so that every package can rely on it.
"""
