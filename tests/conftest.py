"""What holds for all tests: no property depends on time."""

from hypothesis import HealthCheck, settings

# A machine that others use as well may be slow at any moment.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
