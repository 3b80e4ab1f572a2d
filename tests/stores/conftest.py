"""Object storage for the tests of stores."""

from tests.buckets import gate, moto_port, s3

__all__ = ["gate", "moto_port", "s3"]
