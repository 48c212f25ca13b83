"""Which query is implemented where."""

from collections.abc import Mapping

from espbench.names import Query
from queries import (
    check_machine_power,
    check_sensor_status,
    determine_outliers,
    identify_errors,
    identity,
    persist_processing_times,
)
from queries.definition import Definition

DEFINITIONS: Mapping[Query, Definition] = {
    module.DEFINITION.query: module.DEFINITION
    for module in (
        identity,
        check_sensor_status,
        determine_outliers,
        identify_errors,
        check_machine_power,
        persist_processing_times,
    )
}
