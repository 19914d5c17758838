"""Showing: the outcome in the terminal and as a page."""
