"""Estimating: out-of-fold probabilities by features, and which labels are wrong."""
