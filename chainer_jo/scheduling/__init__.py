"""Handing out runs: to processes here, to a cluster, to many ranks; in what order, for how long."""
