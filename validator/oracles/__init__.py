"""One oracle per query: what the answers should have been, from the captured input alone."""

from espbench.names import Query
from validator.oracles import (
    check_machine_power,
    check_sensor_status,
    determine_outliers,
    identify_errors,
    identity,
    persist_processing_times,
)
from validator.oracles.base import Inputs, Oracle

ORACLES: dict[str, Oracle] = {
    module.ORACLE.name: module.ORACLE
    for module in (
        identity,
        check_sensor_status,
        determine_outliers,
        identify_errors,
        check_machine_power,
        persist_processing_times,
    )
}


def oracle_of(query: Query) -> Oracle:
    """The oracle of a query."""
    return ORACLES[query.name]


__all__ = ["ORACLES", "Inputs", "Oracle", "oracle_of"]
