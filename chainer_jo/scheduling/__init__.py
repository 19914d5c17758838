"""Handing out runs: to processes here or to a cluster; in what order, for how long."""
