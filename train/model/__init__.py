"""The models: attention, norms, layers, loss, and how they form a BLOOM or a Gopher."""
