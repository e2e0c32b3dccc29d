"""Serves the handlers of `handlers.sql`, records the messages, and runs a command against them.

    scripts/postgres run -- with_handlers.py RECORDINGS -- COMMAND [ARGUMENT…]

In the command's arguments `{url}` is replaced by the address. The node logs in as the owner of the handlers, because two of them
register others. TIDEGATE_BINARY names the binary.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from with_server import PROXY, run_server

HERE = Path(__file__).parent
LAYER = HERE.parent.parent / "crates/postgres-handlers/sql/handlers"
OWNER = "conformance_owner"
# The passwords of a temporary cluster are no secrets.
PREPARATION = f"""\
CREATE ROLE {OWNER} LOGIN PASSWORD '{OWNER}';
CREATE DATABASE conformance OWNER {OWNER};
"""
CONFIGURATION = """\
databases:
  - name: suite
    postgres: ${HANDLERS_DSN}
    handlers: {schema: api, writes: true}
built_in: []
# Shorter than the slow scenarios of a second, and longer than a quick answer.
limits: {task_after: 300ms}
"""


def psql(target: str, sql: str, *options: str) -> None:
    program = Path(os.environ["TIDEGATE_TEST_POSTGRES_BIN"]) / "psql"
    command = [str(program), "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", *options, "--file", "-", target]
    subprocess.run(command, input=sql, text=True, check=True, stdout=subprocess.DEVNULL)


def prepare() -> str:
    """Creates the database and returns its connection string."""
    psql(os.environ["TIDEGATE_TEST_POSTGRES"], PREPARATION)
    tcp = os.environ["TIDEGATE_TEST_POSTGRES_TCP"]
    target = f"{tcp} user={OWNER} password={OWNER} dbname=conformance sslmode=disable"
    layer = "".join(file.read_text(encoding="utf-8") for file in sorted(LAYER.glob("[0-9]*.sql")))
    psql(target, layer.replace("@schema@", "api"), "--single-transaction")
    psql(target, (HERE / "handlers.sql").read_text(encoding="utf-8"), "--single-transaction")
    return target


def main() -> int:
    # Stops the servers also on SIGTERM.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    recordings, divider, *command = sys.argv[1:]
    assert divider == "--", divider
    os.environ["HANDLERS_DSN"] = prepare()
    with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
        file = Path(folder) / "tidegate.yaml"
        file.write_text(CONFIGURATION, encoding="utf-8")
        serve = [os.environ["TIDEGATE_BINARY"], "serve", "--config", str(file), "--listen", "127.0.0.1:0", "--log", "error"]
        with run_server(serve) as direct, run_server([sys.executable, str(PROXY), recordings, direct]) as url:
            return subprocess.run([part.format(url=url) for part in command]).returncode


if __name__ == "__main__":
    sys.exit(main())
