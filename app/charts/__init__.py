"""Figures for people: rows and counts in, plain Plotly dicts and tables out."""
