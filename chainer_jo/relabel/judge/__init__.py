"""Judging: out-of-fold probabilities by images or by features, and which labels are wrong."""
