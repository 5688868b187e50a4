"""One row per turn: how it is stored, written, asked for and exported."""
