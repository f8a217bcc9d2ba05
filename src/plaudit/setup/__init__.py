"""What front ends share: settings made into judges, endpoints and engines; rows read, JSON lines written."""
