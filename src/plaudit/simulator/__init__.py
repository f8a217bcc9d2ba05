"""The simulator: a judge's server with seeded behaviour, over HTTP or in memory."""
