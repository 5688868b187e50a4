"""What a browser or a script sees: pages, JSON, exports, live rows, and who may see them."""
