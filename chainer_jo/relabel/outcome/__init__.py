"""Outcome: corrected labels, the network trained on them, accuracies, the audit."""
