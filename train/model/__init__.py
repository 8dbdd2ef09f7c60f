"""The models: attention, layers, loss, and how they form a BLOOM."""
