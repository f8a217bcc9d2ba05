"""Caches: verdicts already paid for."""
