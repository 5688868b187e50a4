"""The demo: a Responses provider that can be believed, and agents that talk to it."""
