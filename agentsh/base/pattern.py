"""Regular expressions that are compiled at their first use, for those that many a run never needs."""

import re
from typing import Any, overload


@overload
def later(pattern: str, flags: int = 0) -> re.Pattern[str]: ...
@overload
def later(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]: ...
def later(pattern: str | bytes, flags: int = 0) -> Any:
    """Return what acts as `re.compile(pattern, flags)` does, for 0.1 to 1 ms less at start-up."""
    return _Later(pattern, flags)


class _Later:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled pattern, which is asked for once: the next time it is our own."""
        if name.startswith("_"):  # asked for by those who copy: it has nothing yet
            raise AttributeError(name)
        value = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, value)
        return value
