"""What front ends build from settings: judges, endpoints, engines; samples and verdicts as JSON lines."""
