"""The shell around policy/: waits, sends, retries, reports."""
