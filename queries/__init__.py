"""The example system under test: one file per query on PySpark."""
