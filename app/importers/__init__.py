"""Readers of what other tools, and Warmline itself, have written; each format in its own file."""
