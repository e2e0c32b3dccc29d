"""A client without an SDK: one persistent HTTP connection, requests and answers unchanged.

SDKs hide parts of an answer and cannot send invalid requests; these tests need both.
"""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]
ANSWER_SECONDS_MAX = 120
# The errors of a persistent connection that the server has closed since the last answer.
CLOSED_WHILE_IDLE = (BrokenPipeError, http.client.RemoteDisconnected)


@dataclass(frozen=True)
class Response:
    status: int
    text: str

    @property
    def message(self) -> Json:
        """The JSON-RPC message, from the body or the last event of a stream."""
        events = [line.removeprefix("data:") for line in self.text.splitlines() if line.startswith("data:")]
        return json.loads(events[-1] if events else self.text)


class Caller:
    MODERN, LEGACY = "2026-07-28", "2025-11-25"
    REVISIONS = (MODERN, LEGACY)

    def __init__(self, url: str, credential: str | None = None, revision: str = MODERN) -> None:
        self.revision = revision
        self._address, self._path = urlsplit(url).netloc, urlsplit(url).path
        self._credential = credential
        self._session: str | None = None
        self._connection = http.client.HTTPConnection(self._address, timeout=ANSWER_SECONDS_MAX)

    def request(self, method: str, params: Json | None = None, request_id: Any = 1) -> Json:
        """Sends a request and returns its complete answer."""
        if self.revision != self.MODERN and self._session is None:
            self._open_session()
        message = self._message(method, params or {}, request_id)
        return self.post(json.dumps(message), method, name_header(message["params"])).message

    def call(self, name: str, arguments: Any = None, request_id: Any = 1) -> Json:
        arguments = {} if arguments is None else arguments
        return self.request("tools/call", {"name": name, "arguments": arguments}, request_id)

    def read(self, uri: str) -> Json:
        return self.request("resources/read", {"uri": uri})

    def get(self, name: str, arguments: Json | None = None) -> Json:
        return self.request("prompts/get", {"name": name, "arguments": arguments or {}})

    def list_entries(self, kind: str) -> dict[str, Json]:
        """All entries of a list by name: `tools`, `resources`, `resourceTemplates` or `prompts`."""
        method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
        entries: dict[str, Json] = {}
        params: Json = {}
        while True:
            result = self.request(method, params)["result"]
            entries |= {entry["name"]: entry for entry in result[kind]}
            if "nextCursor" not in result:
                return entries
            params = {"cursor": result["nextCursor"]}

    def names(self, kind: str = "tools") -> set[str]:
        return set(self.list_entries(kind))

    def post(self, text: str, method: str = "", name: str | None = None) -> Response:
        """Posts a text, which need not be a message."""
        headers = self._headers(method, name)
        try:
            response = self._exchange(text, headers)
        except CLOSED_WHILE_IDLE:
            self._connection.close()
            response = self._exchange(text, headers)
        self._session = self._session or response.getheader("Mcp-Session-Id")
        return Response(response.status, response.read().decode())

    def _exchange(self, text: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        try:
            self._connection.request("POST", self._path, text.encode(), headers)
            return self._connection.getresponse()
        except Exception:
            # The next request needs a connection without a request in flight.
            self._connection.close()
            raise

    def send_only(self, method: str, params: Json, request_id: Any = 1) -> None:
        """Sends a request without waiting for the answer, for a client that closes before it."""
        message = self._message(method, params, request_id)
        headers = self._headers(method, name_header(message["params"]))
        self._connection.request("POST", self._path, json.dumps(message).encode(), headers)

    def with_same_session(self) -> "Caller":
        """Another connection of the same session."""
        other = Caller(f"http://{self._address}{self._path}", self._credential, self.revision)
        other._session = self._session
        return other

    def notify(self, method: str, params: Json) -> None:
        self.post(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def initialize(self, revision: str | None) -> Json:
        """The answer to `initialize` with this revision, or without one."""
        params: Json = {"capabilities": {}, "clientInfo": {"name": "tidegate-tests", "version": "1"}}
        if revision is not None:
            params["protocolVersion"] = revision
        message = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}
        return self.post(json.dumps(message)).message

    def _message(self, method: str, params: Json, request_id: Any) -> Json:
        meta: Json = {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientInfo": {"name": "tidegate-tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        own_meta = {"_meta": meta} if self.revision == self.MODERN else {}
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, **own_meta}}

    def _headers(self, method: str, name: str | None) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.revision,
        }
        if self.revision == self.MODERN and method:
            headers |= {"Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
        if self._credential:
            headers["Authorization"] = f"Bearer {self._credential}"
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        return headers

    def _open_session(self) -> None:
        answer = self.initialize(self.revision)
        assert answer["result"]["protocolVersion"] == self.revision, answer
        self.post('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def close(self) -> None:
        self._connection.close()


def name_header(params: Json) -> str | None:
    """The value of the header `Mcp-Name` of a modern request."""
    return params.get("name") or params.get("uri")
