"""Observers: events in, logs and pictures out."""
