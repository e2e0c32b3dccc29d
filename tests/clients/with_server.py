"""Serves the tests' data, records what is said, and runs a client against it.

    with_server.py RECORDINGS SERVER [ARGUMENT…] -- CLIENT [ARGUMENT…]

The server must print `listening on URL` to stderr. In its arguments `{shop}` and `{large}` stand for the data folders and
`{configuration}` for a file that names both; in the client's `{url}` stands for the address. The environment has them too:
TIDEGATE_URL, TIDEGATE_SHOP, TIDEGATE_LARGE, TIDEGATE_CONFIGURATION, and TIDEGATE_RECORDINGS for clients that record by themselves. The exit code is the client's, or 1 when a server did not stop.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import data_folder

PROXY = Path(__file__).parent.parent / "wire" / "http_proxy.py"
STOP_SECONDS_MAX = 15


@contextmanager
def listening(command: list[str]) -> Iterator[str]:
    """Runs `command` and gives the address that it prints; stops it in the end and wants it to stop by itself."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert process.stderr
    try:
        for line in process.stderr:
            sys.stderr.write(line)
            if found := re.search(r"listening on (http://\S+)", line):
                break
        else:
            raise SystemExit(f"{command[0]} ended without listening, exit code {process.wait()}")
        # Somebody must go on reading, or the process would block on a full pipe.
        threading.Thread(target=lambda: sys.stderr.writelines(process.stderr or ()), daemon=True).start()
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit(f"{command[0]} did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None


def main() -> int:
    # Ended from outside, the servers are stopped all the same.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    recordings, *rest = sys.argv[1:]
    divider = rest.index("--")
    server, client = rest[:divider], rest[divider + 1 :]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate"
    with tempfile.TemporaryDirectory(prefix="tidegate-") as temporary:
        shop = data_folder.write(Path(temporary))
        large = data_folder.write_numbers(cache)
        configuration = data_folder.write_configuration(Path(temporary), shop, large)
        served = {"shop": str(shop), "large": str(large), "configuration": str(configuration)}
        command = [argument.format(**served) for argument in server]
        with listening(command) as direct, listening([sys.executable, str(PROXY), recordings, direct]) as url:
            environment = {
                **os.environ,
                "TIDEGATE_URL": url,
                "TIDEGATE_SHOP": str(shop),
                "TIDEGATE_LARGE": str(large),
                "TIDEGATE_CONFIGURATION": str(configuration),
                "TIDEGATE_RECORDINGS": recordings,
            }
            return subprocess.run([argument.format(url=url) for argument in client], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
