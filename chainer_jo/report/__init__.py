"""Tables, figures and verdicts on claims, made from finished runs."""
