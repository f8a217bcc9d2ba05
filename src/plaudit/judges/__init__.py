"""Judges: what is asked of a language model about a sample, and how its answer is read."""
