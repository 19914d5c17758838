"""Writing: corrected labels, corrected data sets, trained networks."""
