"""One run and many: description, presets, store, provenance, processes, clusters, common flags.

Imports `method`, `paper`, and what these rest on.
"""
