"""The example system under test: one file per query on PySpark.

identity, identify_errors   the queries, each reading like its definition
registry                    which query is where
source                      Kafka records, taken apart; what is malformed
engine                      execution modes: triggers, and which query can run in which
session                     the Spark session, every setting with its reason
progress, drain, watch      what Spark tells of itself, when to stop, what went wrong
runner, report              the life of one query, and what is kept of it
"""
