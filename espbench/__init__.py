"""ESPBench for Python: the toolkit around the benchmark's parts."""

__version__ = "0.1.0"
