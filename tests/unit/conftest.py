"""Settings for all unit tests."""

from hypothesis import HealthCheck, settings

# How long an example takes says only how busy the machine is.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")
