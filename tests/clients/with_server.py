"""Serves the tests' data, records the messages, and runs a client against it.

    with_server.py RECORDINGS SERVER [ARGUMENT…] -- CLIENT [ARGUMENT…]

The server must print `listening on URL` to stderr. In its arguments `{shop}` and `{large}` are replaced by the data folders and
`{configuration}` by a file with both; in the client's, `{url}` is replaced by the address. The environment has them too:
TIDEGATE_URL, TIDEGATE_SHOP, TIDEGATE_LARGE, TIDEGATE_CONFIGURATION, and TIDEGATE_RECORDINGS for clients that write recordings.
The exit code is that of the client, or 1 when a server did not stop.
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
# Longer than the server waits for calls that run, 10 s.
STOP_SECONDS_MAX = 30


@contextmanager
def run_server(command: list[str]) -> Iterator[str]:
    """Runs `command` and yields the address that it prints; at the end sends SIGTERM, after which it must stop."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert process.stderr
    try:
        for line in process.stderr:
            sys.stderr.write(line)
            if match := re.search(r"listening on (http://\S+)", line):
                break
        else:
            raise SystemExit(f"{command[0]} ended without listening, exit code {process.wait()}")
        # A thread continues to read, because the process would block on a full pipe.
        threading.Thread(target=lambda: sys.stderr.writelines(process.stderr or ()), daemon=True).start()
        yield match[1]
    finally:
        process.terminate()
        try:
            process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit(f"{command[0]} did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None


def main() -> int:
    # Stops the servers also on SIGTERM.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    recordings, *rest = sys.argv[1:]
    divider = rest.index("--")
    server, client = rest[:divider], rest[divider + 1 :]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate"
    with tempfile.TemporaryDirectory(prefix="tidegate-") as temporary:
        shop = data_folder.write(Path(temporary))
        large = data_folder.write_numbers(cache)
        configuration = data_folder.write_configuration(Path(temporary), shop, large)
        replacements = {"shop": str(shop), "large": str(large), "configuration": str(configuration)}
        command = [argument.format(**replacements) for argument in server]
        with run_server(command) as direct, run_server([sys.executable, str(PROXY), recordings, direct]) as url:
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
