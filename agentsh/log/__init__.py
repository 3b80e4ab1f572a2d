"""The log as bytes: records, frames, scanning, writing, the lease and the store protocols; knows no event type."""
