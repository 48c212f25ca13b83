"""Start the streaming query of a job: from its topics, through its definition, to its sink."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from espbench.errors import EspbenchError
from queries.batches import Around, Handler
from queries.definition import Batched, Inputs, Piped, Streamed
from queries.job import Job
from queries.pipe import Place, piped, shared_counts
from queries.session import sink_options, source_options
from queries.source import read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def options_of(job: Job) -> tuple[dict[str, str], dict[str, str]]:
    """Spark's options for the job's sources and for its sink, none for a query without one."""
    source = source_options(job.bootstrap_servers, job.kafka_options)
    if isinstance(job.way, Batched) and job.way.most_records:
        source["maxOffsetsPerTrigger"] = str(job.way.most_records)
    if not job.definition.query.sink:
        return source, {}
    return source, sink_options(job.bootstrap_servers, job.topics["sink"], job.kafka_options)


def not_given(options: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The options that may be shown: the user's may hold secrets."""
    return {name: value for name, value in options.items() if name[6:] not in given}


def start_stream(
    spark: "SparkSession",
    job: Job,
    counters: dict[str, int],
    note_error: Callable[[EspbenchError], None],
    trigger: Mapping[str, Any],
) -> "StreamingQuery":
    """Start it; `note_error` gets the error of ours that stops a handler, `counters` its numbers.

    `trigger` are the arguments of Spark's `DataStreamWriter.trigger`. Spark wraps what a handler
    raises in pages of Java; our own errors say it in a line.
    """
    query = job.definition.query
    source, sink = options_of(job)
    inputs = Inputs(
        {
            number: read_stream(spark, source, job.topics[f"source-{number}"])
            for number in query.streams
        },
        lambda table: _lookup(spark, job, table),
    )
    way = job.way
    if isinstance(way, Streamed):
        writer = _written(way.answers(inputs), job, sink)
    elif isinstance(way, Piped):
        address = job.database.address if job.database else None
        counters.update(dict.fromkeys(way.counts, 0))
        counts = shared_counts(spark.sparkContext, counters)
        place = Place(job.checkpoint, address, counts)
        writer = _written(piped(way.records(inputs), way.pipe, place), job, sink)
    else:
        around = Around(
            spark=spark,
            bootstrap_servers=job.bootstrap_servers,
            partitions=job.partitions,
            sink_options=sink,
            lookup=inputs.lookup,
            database=job.needed_database,
            freshness_s=job.freshness_s,
            directory=job.checkpoint,
            counters=counters,
        )
        handle: Any = _noting(way.handler(around), note_error)
        writer = way.records(inputs).writeStream.foreachBatch(handle)
    # Of this machine, or mounted on it: not of the file system that a cluster has by default.
    writer = writer.queryName(query.name).option("checkpointLocation", f"file://{job.checkpoint}")
    return writer.trigger(**trigger).start()


def _written(answers: "DataFrame", job: Job, sink: Mapping[str, str]) -> "DataStreamWriter":
    """Into the sink, or nowhere where the query has none."""
    writer = answers.writeStream.format("kafka" if sink else "noop").options(**sink)
    return writer.outputMode(job.plan.output_mode)


def _lookup(spark: "SparkSession", job: Job, table: str) -> "DataFrame":
    """A table of the database; read whenever Spark plans a batch with it."""
    database = job.needed_database()
    reader = spark.read.format("jdbc").options(**database.jdbc())
    return reader.option("dbtable", database.quoted(table)).load()


def _noting(handle: Handler, note_error: Callable[[EspbenchError], None]) -> Handler:
    def note(batch: "DataFrame", number: int) -> None:
        try:
            handle(batch, number)
        except EspbenchError as error:
            note_error(error)
            raise

    return note
