"""A new database with the SQL layer in it, and a node that offers its handlers.

Runs beside a server of `scripts/postgres run`, whose variables say where it is. TIDEGATE_BINARY names the binary and
TIDEGATE_RECORDINGS the folder for what is said.
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
from with_server import PROXY, listening

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LAYER = ROOT / "crates/postgres-handlers/sql/handlers"
SCHEMA = "api"
HANDLERS = f"{{schema: {SCHEMA}, writes: true}}"
LOGIN = "mcp_node"
# Of roles that callers have, and the roles of the database that their calls run as.
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
    """A database of its own, and psql as the superuser. What lies in a throw-away cluster is no secret."""

    def __init__(self, name: str) -> None:
        self._server = os.environ["TIDEGATE_TEST_POSTGRES"]
        self._psql = Path(os.environ["TIDEGATE_TEST_POSTGRES_BIN"]) / "psql"
        # Of keywords that stand there twice the last one counts.
        self.superuser = self._server
        self.ask(f'DROP DATABASE IF EXISTS "{name}"')
        self.ask(f'CREATE DATABASE "{name}"')
        self.superuser = f"{self._server} dbname={name}"
        tcp = os.environ["TIDEGATE_TEST_POSTGRES_TCP"]
        self.target = f"{tcp} user={LOGIN} password={LOGIN} dbname={name} sslmode=disable"
        self.install()

    def install(self) -> None:
        """The layer, and the roles that it lets in."""
        layer = "".join(file.read_text(encoding="utf-8") for file in sorted(LAYER.glob("[0-9]*.sql")))
        self.run(layer.replace("@schema@", SCHEMA))
        self.run_file(HERE / "roles.sql")

    def ask(self, sql: str, role: str | None = None) -> str:
        """What psql prints of one statement; AssertionError with the server's words when it fails."""
        become = [] if role is None else ["--command", f"SET ROLE {role}"]
        return self._say([*become, "--command", sql], "")

    def run(self, sql: str) -> str:
        """Many statements, all or none."""
        return self._say(["--single-transaction", "--file", "-"], sql)

    def run_file(self, file: Path) -> str:
        return self.run(file.read_text(encoding="utf-8"))

    def run_each(self, statements: list[str]) -> None:
        """Each in a transaction of its own."""
        self._say(["--file", "-"], ";\n".join(statements))

    def refusal(self, sql: str, role: str | None = None) -> str:
        """The server's words to a statement that it must refuse."""
        try:
            said = self.ask(sql, role)
        except AssertionError as error:
            return str(error)
        raise AssertionError(f"it was carried out: {said}")

    def register(self, metadata: dict[str, Any], body: str) -> str:
        return self.ask(self.registration(metadata, body))

    @staticmethod
    def registration(metadata: dict[str, Any], body: str) -> str:
        """The statement that registers a handler."""
        text = json.dumps(metadata)
        return f"SELECT {SCHEMA}.create_or_replace_mcp_handler($metadata${text}$metadata$, $handler${body}$handler$)"

    def psql(self) -> list[str]:
        return [str(self._psql), "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", self.superuser]

    def _say(self, arguments: list[str], text: str) -> str:
        done = subprocess.run([*self.psql(), *arguments], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr.strip()
        return done.stdout.strip()


def tool(name: str, text: str, **more: Any) -> tuple[dict[str, Any], str]:
    """Metadata and body of a tool that is open to everybody and answers with a text."""
    quoted = text.replace("'", "''")
    body = f"BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('{quoted}')), (request).request_id); END"
    return {"type": "tool", "name": name, "requiresAuth": False, **more}, body


@dataclass
class Node:
    """A running server."""

    # Through the proxy that records, for clients that keep to the protocol; and past it, for those that do not.
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
        """Nobody, `staff` and `auditor` who have keys, or `NAME@TENANT` with a token."""
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
def served(
    database: Database,
    *,
    handlers: str = HANDLERS,
    connections: int = 10,
    roles: dict[str, str] = ROLES,
    more: str = "",
) -> Iterator[Node]:
    """Serves the handlers of the database; `more` joins the configuration."""
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
        with listening(serve) as direct, listening([sys.executable, str(PROXY), recordings, direct]) as url:
            node = Node(url, direct, keys, secret, file)
            try:
                yield node
            finally:
                node.close()


def until(is_so: Callable[[], Any], what: str) -> Any:
    """Asks until the answer is true, and gives it; AssertionError when it never is."""
    gives_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while not (answer := is_so()):
        assert time.monotonic() < gives_up_at, f"waited in vain until {what}"
        time.sleep(POLL_SECONDS)
    return answer
