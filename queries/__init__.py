"""The example system under test: one file per query on PySpark.

identity, check_sensor_status, determine_outliers, identify_errors, check_machine_power,
persist_processing_times    the queries, each reading like its definition
sos, stamping               stochastic outlier selection; stamps in bulk
definition, batches, carry  what a query provides, what surrounds it, what a batch leaves
registry                    which query is where
source                      Kafka records, taken apart; what is malformed
engine                      execution modes: triggers, and which query can run in which
session                     the Spark session, every setting with its reason
progress, drain, watch      what Spark tells of itself, when to stop, what went wrong
runner, report              the life of one query, and what is kept of it
"""
