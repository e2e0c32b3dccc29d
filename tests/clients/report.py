"""What a test program prints: a line a check, and the closing line that `scripts/test` adds up."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager


class Report:
    def __init__(self, part: str):
        self._part = part
        self._passed = 0
        self._failed = 0

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """A check fails when its block raises; the next one runs all the same."""
        try:
            yield
        except Exception as error:
            self._failed += 1
            print(f"FAIL {self._part}: {name}: {describe(error)}", flush=True)
        else:
            self._passed += 1
            print(f"ok   {self._part}: {name}", flush=True)

    def close(self) -> int:
        """Prints the closing line and returns the program's exit code."""
        print(f"{self._passed} passed, {self._failed} failed", flush=True)
        return 1 if self._failed or not self._passed else 0


def describe(error: BaseException) -> str:
    """An assertion speaks for itself; anything else is unexpected and shows where it came from."""
    if isinstance(error, AssertionError) and error.args:
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()
