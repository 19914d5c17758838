"""What a run is: its description, presets, the task, the run itself, the store, its provenance."""
