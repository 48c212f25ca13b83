import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datagen import workplaces
from datagen.parameters import Parameters
from datagen.workplaces import NOMINAL_RUN_S

RUN_US = NOMINAL_RUN_S * 1_000_000
SCALES = st.integers(1, 50)
SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS, SCALES)
@settings(max_examples=100)
def test_machines_go_down_and_up_during_the_run(seed: int, scale: int) -> None:
    drawn = workplaces.draw(Parameters(seed=seed, scale=scale))
    for machine in (1, 2):
        mine = drawn.workplaces == machine
        starts, ends = drawn.starts_us[mine], drawn.ends_us[mine]
        assert drawn.numbers[mine].tolist() == list(range(len(starts)))
        assert len(starts) >= 3
        assert starts[0] > 0
        assert ends[-1] < RUN_US
        assert (ends > starts).all()
        assert (starts[1:] > ends[:-1]).all()
        assert 0.30 <= (ends - starts).sum() / RUN_US <= 0.60


@given(SEEDS, SCALES)
@settings(max_examples=100)
def test_of_the_others_40_percent_are_down_throughout(seed: int, scale: int) -> None:
    drawn = workplaces.draw(Parameters(seed=seed, scale=scale))
    assert set(drawn.workplaces.tolist()) == set(range(10 * scale + 1))
    others = ~np.isin(drawn.workplaces, (1, 2))
    assert others.sum() == 10 * scale - 1
    throughout = (drawn.starts_us[others] < 0) & (drawn.ends_us[others] > RUN_US)
    past = (drawn.ends_us[others] < 0) & (drawn.starts_us[others] < drawn.ends_us[others])
    assert throughout.sum() == round(0.4 * (10 * scale - 1))
    assert (throughout | past).all()


def test_the_fixed_downtimes_do_not_depend_on_a_run() -> None:
    drawn = workplaces.draw(Parameters(downtimes="2021"))
    assert drawn.workplaces.tolist() == list(range(31))
    now = np.datetime64("2026-01-01", "us").astype(np.int64)
    assert drawn.ends_us[1] < now
    assert drawn.starts_us[2] < now < drawn.ends_us[2]
    throughout = (drawn.starts_us < now) & (drawn.ends_us > now)
    assert throughout.sum() == 1 + round(0.4 * 29)


@pytest.mark.parametrize("kind", ["run", "2021"])
def test_the_file_has_timestamps_in_key_order(kind: str) -> None:
    data, rows = workplaces.render(Parameters.model_validate({"downtimes": kind}))
    fields = [line.split("\t") for line in data.decode().splitlines()]
    assert len(fields) == rows
    keys = [(int(row[0]), int(row[1])) for row in fields]
    assert keys == sorted(keys)
    for row in fields:
        assert np.datetime64(row[2]) < np.datetime64(row[3])
        assert len(row[2]) == len("2021-01-01 00:00:00.000000")
