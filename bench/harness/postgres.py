"""A throw-away PostgreSQL 15 with the accounts of pgbench, and the processor time of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.process import ROOT, TIDEGATE, Server, cpu_seconds

SCRIPT = ROOT / "scripts/postgres"
VERSION = "15"
ROWS_PER_SCALE = 100_000
# The roles that servers log in as and run as. The passwords of a throw-away cluster are no secrets.
LOGIN, READER = "bench", "reader"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cluster:
    """The running server."""

    superuser: str
    port: int
    folder: Path
    bin: Path

    @property
    def target(self) -> str:
        """The connection string of the servers: TCP, without TLS, as a role that owns nothing."""
        return f"host=127.0.0.1 port={self.port} user={LOGIN} password={LOGIN} dbname=postgres sslmode=disable"

    def server(self, configuration: Path, *arguments: str, program: Path = TIDEGATE) -> Server:
        """Tidegate with this configuration, in which `${BENCH_DSN}` is this cluster."""
        variables = {"BENCH_DSN": self.target}
        return Server.tidegate("--config", configuration, *arguments, program=program, variables=variables)

    def query(self, sql: str) -> str:
        """Runs a statement as the superuser and returns the output of psql."""
        command = [self.bin / "psql", "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", "--command", sql, self.superuser]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def run(self, sql: str) -> None:
        """Runs several statements as the superuser in one transaction."""
        command = [self.bin / "psql", "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", "--single-transaction"]
        subprocess.run([*command, "--file=-", self.superuser], input=sql, check=True, capture_output=True, text=True)

    def fill(self, scale: int) -> int:
        """Creates the tables of pgbench again and returns the number of accounts."""
        command = [self.bin / "pgbench", "--initialize", "--quiet", f"--scale={scale}", self.superuser]
        subprocess.run(command, check=True, capture_output=True)
        self.query(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {LOGIN}, {READER}")
        # Writes the hint bits now, so that the first reader does not pay for them.
        self.query("SELECT sum(abalance) FROM pgbench_accounts")
        return scale * ROWS_PER_SCALE

    def connections(self) -> int:
        """The number of open connections of the servers under measurement."""
        return int(self.query(f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{LOGIN}'"))

    def cpu_seconds(self) -> float:
        """The processor time of all processes of the server, including those that have ended."""
        postmaster = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        # After the name, which may contain spaces, fields 14 and 15 are the times of the children that have ended.
        fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND
        return ended + sum(living_cpu_seconds(pid) for pid in [postmaster, *children(postmaster)])


def within_cluster() -> Cluster:
    """The cluster of this script. Without one, starts the script again inside a new cluster."""
    if "TIDEGATE_TEST_POSTGRES" not in os.environ:
        sys.stdout.flush()
        os.execv(SCRIPT, [str(SCRIPT), "run", "--version", VERSION, "--", sys.executable, *sys.argv])
    tcp = dict(part.split("=") for part in os.environ["TIDEGATE_TEST_POSTGRES_TCP"].split())
    cluster = Cluster(
        superuser=os.environ["TIDEGATE_TEST_POSTGRES"],
        port=int(tcp["port"]),
        folder=Path(os.environ["TIDEGATE_TEST_POSTGRES_FOLDER"]),
        bin=Path(os.environ["TIDEGATE_TEST_POSTGRES_BIN"]),
    )
    cluster.query(f"CREATE ROLE {READER} NOLOGIN")
    cluster.query(f"CREATE ROLE {LOGIN} LOGIN NOINHERIT PASSWORD '{LOGIN}' IN ROLE {READER}")
    return cluster


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def living_cpu_seconds(pid: int) -> float:
    """0 for a process that has ended since it was listed."""
    try:
        return cpu_seconds(pid)
    except FileNotFoundError:
        return 0.0
