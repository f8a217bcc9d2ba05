"""The shell around core/: waits, sends, retries, reports."""
