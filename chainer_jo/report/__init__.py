"""Tables, figures and the report, made from finished runs."""
