"""What a test program prints: a line a check, and the closing line that `scripts/test` adds up."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


class Report:
    def __init__(self) -> None:
        # What is under test right now, such as a transport; it stands before each check's name.
        self.subject = ""
        self._passed = 0
        self._failed = 0

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """A check fails when its block raises; the next one runs all the same."""
        try:
            yield
        except Exception as error:
            self._failed += 1
            print(f"FAIL {self.subject}: {name}: {describe(error)}", flush=True)
        else:
            self._passed += 1
            print(f"ok   {self.subject}: {name}", flush=True)

    def close(self) -> int:
        """Prints the closing line and returns the program's exit code."""
        print(f"{self._passed} passed, {self._failed} failed", flush=True)
        return 1 if self._failed or not self._passed else 0


def describe(error: BaseException) -> str:
    """An assertion speaks for itself; anything else shows where in the tests it came from."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(part) for part in error.exceptions)
    if isinstance(error, AssertionError) and error.args:
        return str(error)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(HERE))]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
