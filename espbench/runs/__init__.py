"""The run store and the whole benchmark, step by step."""
