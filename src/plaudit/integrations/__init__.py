"""Frameworks for training, a package or a file for each; docs/frameworks.md shows how each is told of it."""
