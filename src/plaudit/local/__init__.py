"""The embedded judge: a real small model, served on this machine."""
