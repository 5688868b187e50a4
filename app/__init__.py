"""The Warmline service."""
