"""The page: what a journal shows, in a browser."""
