"""The gateway's edge: from a client's bytes to a call of the engine, and back."""
