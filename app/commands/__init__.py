"""The commands of ``warmline``, one per file: their options and their words."""
