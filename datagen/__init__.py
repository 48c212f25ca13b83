"""Business data, production times and sensor streams, written to files."""
