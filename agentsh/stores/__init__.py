"""Places to keep logs and blobs: one backend, one file; a store never sees an event."""
