"""Decisions without clock, chance or I/O: facts come in as arguments, the answer comes out."""
