"""What a run will need before any machine is rented: memory, layouts, time, energy, checkpoints, failures."""
