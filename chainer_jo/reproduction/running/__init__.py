"""Computation of runs: one by one or many at a time, stored, resumed, and with provenance."""
