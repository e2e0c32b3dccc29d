"""The output of a test program: a line for each check, and the summary line that `scripts/test` adds up."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


class Report:
    def __init__(self) -> None:
        # The current subject, such as a transport; it precedes the name of each check.
        self.subject = ""
        self._passed = 0
        self._failed = 0

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """A check fails when its block raises; the next one still runs."""
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
    """The message of an assertion; for any other error, also the line of the test."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(part) for part in error.exceptions)
    if isinstance(error, AssertionError) and error.args:
        return str(error)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(HERE))]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
