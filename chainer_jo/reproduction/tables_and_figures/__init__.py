"""Tables, figures and pages of claims, made from finished runs."""
