"""A strict Responses provider for the demo and the tests.

It shares no code with ``engine``: what it checks must not be written by the same hand.
``core`` decides everything and does no I/O; ``server`` puts it on a port; ``oracle`` judges.
"""
