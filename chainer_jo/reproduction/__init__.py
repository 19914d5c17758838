"""The paper's experiments, from their descriptions to tables, figures and claims."""
