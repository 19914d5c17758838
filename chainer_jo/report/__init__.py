"""From finished runs to what the paper shows: tables, figures, the report."""
