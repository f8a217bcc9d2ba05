"""Observers: events in, logs, progress lines and metrics out."""
