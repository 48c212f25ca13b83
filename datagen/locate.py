"""Where the data set of a configuration is, or will be."""

from pathlib import Path

from datagen.parameters import Parameters
from espbench.config import Settings
from espbench.paths import StateDir


def parameters_of(settings: Settings) -> Parameters:
    """The parameters that the configuration asks for."""
    data = settings.data
    return Parameters(
        scale=data.scale, seed=data.seed, sensor_rows=data.sensor_rows, downtimes=data.downtimes
    )


def data_directory(settings: Settings, parameters: Parameters | None = None) -> Path:
    """The configured directory, else one named by its content in the state directory."""
    if settings.data.directory:
        return settings.data.directory.expanduser().absolute()
    return StateDir.of(settings).data / (parameters or parameters_of(settings)).directory_name()
