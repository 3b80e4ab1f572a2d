"""Object storage for the tests of stores."""

from tests.buckets import accounts, az, cloud, cloud_gate, gate, gs, moto_port, s3

__all__ = ["accounts", "az", "cloud", "cloud_gate", "gate", "gs", "moto_port", "s3"]
