"""For every test: a directory of its own for temporary files, so that what a killed process leaves is not in /tmp."""

import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let sessions make their private directories where pytest cleans up: tests kill hundreds of them."""
    place = tmp_path_factory.mktemp("tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(place))
        patch.setattr(tempfile, "tempdir", None)
        yield
