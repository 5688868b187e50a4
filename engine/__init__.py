"""The continuation engine: proves that a request extends what the provider holds.

No web framework, no database. The pure files decide; ``driver`` is the only one that awaits.
"""
