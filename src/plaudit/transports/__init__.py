"""Transports: how a request reaches an endpoint."""
