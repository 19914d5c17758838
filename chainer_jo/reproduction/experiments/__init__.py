"""Descriptions of runs with a stable id, and the presets that make them."""
