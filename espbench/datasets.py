"""A generated data set as the loader takes it."""

from pathlib import Path

from datagen.manifest import PRODUCTION_TIMES, TABLES, read_manifest, table_file
from schema.dataset import DataSet, TableFile


def data_set_in(directory: Path) -> DataSet:
    """The data set whose manifest is there; raises `InputError` where there is none."""
    manifest = read_manifest(directory)

    def file(name: str) -> TableFile:
        entry = manifest.file(name)
        return TableFile(directory / name, entry.rows, entry.sha256)

    return DataSet(
        tables_sha256=manifest.tables_sha256,
        tables={table: file(table_file(table)) for table in TABLES},
        production_times=file(PRODUCTION_TIMES),
        scale=manifest.parameters.scale,
        seed=manifest.parameters.seed,
        downtimes=manifest.downtimes.kind,
        nominal_run_s=manifest.downtimes.nominal_run_s,
    )
