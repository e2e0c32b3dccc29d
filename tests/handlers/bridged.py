"""A new database with the SQL layer in it, and a node that offers its handlers.

Needs a server of `scripts/postgres run`, and uses its variables. TIDEGATE_BINARY names the binary and
TIDEGATE_RECORDINGS the folder for recordings.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from caller import Caller
from with_server import PROXY, run_server

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LAYER = ROOT / "crates/postgres-handlers/sql/handlers"
SCHEMA = "api"
HANDLERS = f"{{schema: {SCHEMA}, writes: true}}"
LOGIN = "mcp_node"
# The roles of callers, and the database roles of their calls.
ROLES = {"staff": "mcp_staff", "auditor": "mcp_auditor", "public": "mcp_public"}
ISSUER, AUDIENCE = "https://issuer.example.com/", "tidegate-tests"
WAIT_SECONDS_MAX = 30
POLL_SECONDS = 0.02

CONFIGURATION = """\
databases:
  - name: shop
    postgres: ${{HANDLERS_DSN}}
    handlers: {handlers}
    role: {{by_role: {roles}}}
    connections: {connections}
built_in: []
roles:
  - {{name: staff, toolsets: ["*"], claims: {{role: staff}}}}
  - {{name: auditor, toolsets: ["*"], claims: {{role: auditor}}}}
  - {{name: stranger, toolsets: ["*"], claims: {{role: stranger}}}}
  - {{name: public, toolsets: ["*"]}}
auth:
  keys: keys.json
  anonymous: [public]
  local: [staff]
  tokens:
    issuer: {issuer}
    audience: {audience}
    algorithms: [HS256]
    secret: ${{HANDLERS_SECRET}}
    tenant_claim: tenant
"""


class Database:
    """A new database, and psql as the superuser. The passwords of a temporary cluster are no secrets."""

    def __init__(self, name: str) -> None:
        self._server = os.environ["TIDEGATE_TEST_POSTGRES"]
        self._psql = Path(os.environ["TIDEGATE_TEST_POSTGRES_BIN"]) / "psql"
        # The last of two equal keywords applies.
        self.superuser = self._server
        self.query(f'DROP DATABASE IF EXISTS "{name}"')
        self.query(f'CREATE DATABASE "{name}"')
        self.superuser = f"{self._server} dbname={name}"
        tcp = os.environ["TIDEGATE_TEST_POSTGRES_TCP"]
        self.target = f"{tcp} user={LOGIN} password={LOGIN} dbname={name} sslmode=disable"
        self.install()

    def install(self) -> None:
        """Installs the SQL layer and the roles with access to it."""
        layer = "".join(file.read_text(encoding="utf-8") for file in sorted(LAYER.glob("[0-9]*.sql")))
        self.run(layer.replace("@schema@", SCHEMA))
        self.run_file(HERE / "roles.sql")

    def query(self, sql: str, role: str | None = None) -> str:
        """The output of psql for one statement; AssertionError with the server's message when it fails."""
        become = [] if role is None else ["--command", f"SET ROLE {role}"]
        return self._run_psql([*become, "--command", sql], "")

    def run(self, sql: str) -> str:
        """Runs several statements in one transaction."""
        return self._run_psql(["--single-transaction", "--file", "-"], sql)

    def run_file(self, file: Path) -> str:
        return self.run(file.read_text(encoding="utf-8"))

    def run_each(self, statements: list[str]) -> None:
        """Runs each statement in its own transaction."""
        self._run_psql(["--file", "-"], ";\n".join(statements))

    def refusal(self, sql: str, role: str | None = None) -> str:
        """The error message of a statement that the server must reject."""
        try:
            output = self.query(sql, role)
        except AssertionError as error:
            return str(error)
        raise AssertionError(f"it succeeded: {output}")

    def register(self, metadata: dict[str, Any], body: str) -> str:
        return self.query(self.registration(metadata, body))

    @staticmethod
    def registration(metadata: dict[str, Any], body: str) -> str:
        """The statement that registers a handler."""
        text = json.dumps(metadata)
        return f"SELECT {SCHEMA}.create_or_replace_mcp_handler($metadata${text}$metadata$, $handler${body}$handler$)"

    def psql(self) -> list[str]:
        return [str(self._psql), "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", self.superuser]

    def _run_psql(self, arguments: list[str], text: str) -> str:
        done = subprocess.run([*self.psql(), *arguments], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr.strip()
        return done.stdout.strip()


def tool(name: str, text: str, **more: Any) -> tuple[dict[str, Any], str]:
    """Metadata and body of a public tool that answers with a text."""
    quoted = text.replace("'", "''")
    body = f"BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('{quoted}')), (request).request_id); END"
    return {"type": "tool", "name": name, "requiresAuth": False, **more}, body


@dataclass
class Node:
    """A running server."""

    # The address of the recording proxy, and the direct one, for clients that violate the protocol.
    url: str
    direct: str
    keys: dict[str, str]
    secret: str
    configuration: Path
    _callers: list[Caller] = field(default_factory=list)

    def token(self, subject: str, tenant: str | None, role: str = "staff") -> str:
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "role": role, "exp": int(time.time()) + 3600}
        return jwt.encode(claims | ({} if tenant is None else {"tenant": tenant}), self.secret, algorithm="HS256")

    def credential(self, who: str | None) -> str | None:
        """None for an anonymous caller, the key of `staff` or `auditor`, or a token for `NAME@TENANT`."""
        if who is None:
            return None
        name, at, tenant = who.partition("@")
        return self.token(name, tenant or None) if at else self.keys[name]

    def caller(self, who: str | None = None, revision: str = Caller.MODERN, *, direct: bool = False) -> Caller:
        caller = Caller(self.direct if direct else self.url, self.credential(who), revision)
        self._callers.append(caller)
        return caller

    def close(self) -> None:
        for caller in self._callers:
            caller.close()


@contextmanager
def run_node(
    database: Database,
    *,
    handlers: str = HANDLERS,
    connections: int = 10,
    roles: dict[str, str] = ROLES,
    more: str = "",
) -> Iterator[Node]:
    """Serves the handlers of the database; `more` is appended to the configuration."""
    binary = os.environ["TIDEGATE_BINARY"]
    recordings = os.environ["TIDEGATE_RECORDINGS"]
    with tempfile.TemporaryDirectory(prefix="tidegate-handlers-") as folder:
        file, secret = Path(folder) / "tidegate.yaml", secrets.token_hex(32)
        os.environ |= {"HANDLERS_DSN": database.target, "HANDLERS_SECRET": secret}
        text = CONFIGURATION.format(
            handlers=handlers, connections=connections, roles=json.dumps(roles), issuer=ISSUER, audience=AUDIENCE
        )
        file.write_text(text + more, encoding="utf-8")
        keys = {}
        for name in ("staff", "auditor"):
            add = [binary, "key", "add", name, "--role", name, "--file", f"{folder}/keys.json"]
            keys[name] = subprocess.run(add, check=True, capture_output=True, text=True).stdout.split()[-1]
        serve = [binary, "serve", "--config", str(file), "--listen", "127.0.0.1:0", "--log", "off"]
        with run_server(serve) as direct, run_server([sys.executable, str(PROXY), recordings, direct]) as url:
            node = Node(url, direct, keys, secret, file)
            try:
                yield node
            finally:
                node.close()


def wait_until(is_so: Callable[[], Any], what: str) -> Any:
    """Polls until the result is true, and returns it; raises an AssertionError after the time limit."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (answer := is_so()):
        assert time.monotonic() < deadline, f"timeout while waiting until {what}"
        time.sleep(POLL_SECONDS)
    return answer
