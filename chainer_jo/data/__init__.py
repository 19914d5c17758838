"""Data sets: sources, files, archives, decoding, caches. Imports only the top-level helpers."""
