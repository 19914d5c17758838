"""Tables, figures and pages of verdicts, made from finished runs."""
