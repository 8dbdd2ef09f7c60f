"""How one model is spread over processes: the layout, tensor-parallel layers, and the pipeline."""
