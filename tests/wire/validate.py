"""Checks every message that the server sent against the JSON schema of its revision.

    validate.py FOLDER…

reads the recordings. Some rules of the specification are not in the schemas and are checked in addition: each answer belongs to an open request, progress rises and ends with its request, and no peer receives fields or
codes of another era. One check is one kind of message in one revision, such as `2025-06-18 result of tools/call`.
"""

import base64
import binascii
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import recording
from jsonschema.validators import validator_for

SCHEMAS = Path(__file__).parent.parent / "schemas"
# The extensions whose definitions are added to a revision.
EXTENSIONS = {"2026-07-28": ("tasks-2026-07-28",)}
MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# The revision that a server assumes without a session and a version header.
ASSUMED = "2025-03-26"
# Results that replace the result of the method, by their `resultType`.
OTHER_RESULTS = {"input_required": "InputRequiredResult", "task": "CreateTaskResult"}
MODERN_ONLY_FIELDS = ("resultType", "ttlMs", "cacheScope")
LEGACY_ONLY_CODES = (-32002, -32042)
PROBLEMS_PRINTED_PER_CHECK = 3

formats = jsonschema.FormatChecker(formats=[])


@formats.checks("byte", raises=binascii.Error)
def is_base64(value: object) -> bool:
    return not isinstance(value, str) or base64.b64decode(value, validate=True) is not None


@formats.checks("uri", raises=ValueError)
def is_uri(value: object) -> bool:
    return not isinstance(value, str) or (bool(urlsplit(value).scheme) and " " not in value)


def definitions_of(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


class Revision:
    """One revision's schema, and which of its definitions holds for which message."""

    def __init__(self, name: str):
        self.name = name
        self._schema = definitions_of(name)
        for extension in EXTENSIONS.get(name, ()):
            self._schema["$defs"] |= definitions_of(extension)["$defs"]
        self._key = "$defs" if "$defs" in self._schema else "definitions"
        self._definitions: dict[str, Any] = self._schema[self._key]
        self._of_method: dict[str, str] = {}
        self._of_code: dict[int, str] = {}
        for definition, schema in self._definitions.items():
            method = schema.get("properties", {}).get("method", {}).get("const")
            # Unions such as ServerNotification may repeat a method; the message's own definition is named for it.
            if method and definition.endswith(("Request", "Notification")) and not definition.startswith("Client"):
                self._of_method[method] = definition
            for part in schema.get("properties", {}).get("error", {}).get("allOf", []):
                if code := part.get("properties", {}).get("code", {}).get("const"):
                    self._of_code[code] = definition

    @cache
    def _validator(self, definition: str) -> jsonschema.protocols.Validator:
        schema = {**self._schema, "$ref": f"#/{self._key}/{definition}"}
        return validator_for(schema)(schema, format_checker=formats)

    def _violations(self, definition: str, value: Any) -> list[str]:
        return [
            f"{definition}{error.json_path.removeprefix('$')}: {error.message[:300]}"
            for error in self._validator(definition).iter_errors(value)
        ]

    def _first_defined(self, *names: str) -> str:
        return next(name for name in names if name in self._definitions)

    def call(self, message: dict[str, Any]) -> list[str]:
        """Violations of a request or a notification."""
        if definition := self._of_method.get(message["method"]):
            return self._violations(definition, message)
        return [f"{message['method']} is not a method of {self.name}"]

    def result(self, message: dict[str, Any], method: str) -> list[str]:
        request = self._of_method.get(method, "")
        definition = request.removesuffix("Request") + "Result"
        if definition not in self._definitions:
            definition = "EmptyResult"
        result = message["result"]
        if isinstance(result, dict):
            definition = OTHER_RESULTS.get(str(result.get("resultType")), definition)
        envelope = self._first_defined("JSONRPCResultResponse", "JSONRPCResponse")
        return self._violations(definition, result) + self._violations(envelope, message)

    def error(self, message: dict[str, Any]) -> list[str]:
        if message.get("id", 0) is None:
            # JSON-RPC answers a request with an unreadable id with null, where the schema of MCP omits the id.
            message = {key: value for key, value in message.items() if key != "id"}
        code = message["error"].get("code") if isinstance(message["error"], dict) else None
        definition = self._of_code.get(code) or self._first_defined("JSONRPCErrorResponse", "JSONRPCError")
        return self._violations(definition, message)


@cache
def revision_named(name: str) -> Revision:
    return Revision(name)


@dataclass
class Request:
    method: str
    revision: str
    progress_token: Any
    progress: float | None = None


@dataclass
class Conversation:
    """The negotiated revision and the open requests of one stdio connection, HTTP session or HTTP exchange."""

    negotiated: str | None = None
    open_requests: dict[str, Request] = field(default_factory=dict)


@dataclass
class Verdict:
    """The result of checking one message of the server."""

    kind: str
    problems: list[str]


class Judge:
    """Reads one recording from top to bottom."""

    def __init__(self) -> None:
        self._connection = Conversation()
        self._sessions: dict[str, Conversation] = defaultdict(Conversation)
        self._exchanges: dict[int, Conversation] = defaultdict(Conversation)

    def _conversations(self, message: recording.Message) -> list[Conversation]:
        """Where a message belongs, the nearest first."""
        if message.exchange is None:
            return [self._connection]
        nearest = [self._exchanges[message.exchange]]
        return nearest + ([self._sessions[message.session]] if message.session else [])

    def judge(self, message: recording.Message) -> Iterator[Verdict]:
        if message.unreadable:
            # Messages of clients are not checked; some send invalid bytes deliberately.
            if message.sender == "server":
                yield Verdict("bytes", [message.unreadable])
            return
        try:
            content = json.loads(message.text)
        except ValueError as error:
            if message.sender == "server":
                yield Verdict("bytes", [f"not JSON ({error}): {message.text[:200]!r}"])
            return
        for part in content if isinstance(content, list) else [content]:
            if message.sender == "client":
                self._store_request(part, message)
            else:
                yield self._judge_part(part, message)

    def _store_request(self, part: Any, message: recording.Message) -> None:
        """Stores a request of the client until it is answered."""
        if not isinstance(part, dict) or "id" not in part or "method" not in part:
            return
        conversations = self._conversations(message)
        params = part.get("params") if isinstance(part.get("params"), dict) else {}
        meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
        versions = [message.version, meta.get("io.modelcontextprotocol/protocolVersion")]
        legacy = next((c.negotiated for c in conversations if c.negotiated), None) or (
            LEGACY[-1] if part["method"] == "initialize" else ASSUMED
        )
        is_modern = any(version and version not in LEGACY for version in versions) or part["method"] == "server/discover"
        revision = MODERN if is_modern else versions[0] or legacy
        request = Request(part["method"], revision, meta.get("progressToken"))
        for conversation in conversations:
            conversation.open_requests[json.dumps(part["id"])] = request

    def _judge_part(self, part: Any, message: recording.Message) -> Verdict:
        conversations = self._conversations(message)
        if not isinstance(part, dict):
            return Verdict("bytes", [f"not a JSON-RPC message: {message.text[:200]!r}"])
        if "method" in part:
            return self._judge_call(part, conversations, message)
        key = json.dumps(part.get("id"))
        request = next((found for c in conversations if (found := c.open_requests.pop(key, None))), None)
        for conversation in conversations:
            conversation.open_requests.pop(key, None)
        if request is None:
            if "error" in part and part.get("id") is None:
                revision = message.version if message.version in LEGACY else MODERN
                return Verdict(f"{revision} error without an id", revision_named(revision).error(part))
            return Verdict("answers", [f"answers no open request: {message.text[:200]}"])
        if "error" in part:
            return self._judge_error(part, request)
        return self._judge_result(part, request, conversations)

    def _judge_error(self, part: dict[str, Any], request: Request) -> Verdict:
        revision = revision_named(request.revision)
        problems = revision.error(part)
        code = part["error"].get("code") if isinstance(part["error"], dict) else None
        if request.revision == MODERN and code in LEGACY_ONLY_CODES:
            problems.append(f"the code {code} is not sent to a modern peer")
        return Verdict(f"{request.revision} error {code}", problems)

    def _judge_result(self, part: dict[str, Any], request: Request, conversations: list[Conversation]) -> Verdict:
        result = part.get("result")
        if request.method == "initialize" and isinstance(result, dict):
            request.revision = result.get("protocolVersion", request.revision)
            if request.revision not in LEGACY:
                return Verdict("answers", [f"initialize negotiated {request.revision!r}"])
            for conversation in conversations:
                conversation.negotiated = request.revision
        problems = revision_named(request.revision).result(part, request.method) if "result" in part else ["no result"]
        if request.revision != MODERN and isinstance(result, dict):
            problems += [f"{name} is not sent to a legacy peer" for name in MODERN_ONLY_FIELDS if name in result]
        return Verdict(f"{request.revision} result of {request.method}", problems)

    def _judge_call(
        self, part: dict[str, Any], conversations: list[Conversation], message: recording.Message
    ) -> Verdict:
        """A notification, or a legacy server's own request."""
        params = part.get("params") if isinstance(part.get("params"), dict) else {}
        open_requests = [request for c in conversations for request in c.open_requests.values()]
        negotiated = next((c.negotiated for c in conversations if c.negotiated), None)
        revision = next((r.revision for r in open_requests), None) or negotiated or message.version or MODERN
        problems = []
        if part["method"] == "notifications/progress":
            owner = next((r for r in open_requests if r.progress_token == params.get("progressToken")), None)
            if owner is None:
                problems.append(f"progress for no open request: {message.text[:200]}")
            else:
                revision = owner.revision
                if owner.progress is not None and not params.get("progress", 0) > owner.progress:
                    problems.append(f"progress fell from {owner.progress} to {params.get('progress')}")
                owner.progress = params.get("progress")
        if "id" in part and revision == MODERN:
            problems.append(f"a modern server sends no requests: {message.text[:200]}")
        known = revision if revision in LEGACY else MODERN
        return Verdict(f"{known} {part['method']}", problems + revision_named(known).call(part))


def main(folders: list[str]) -> int:
    counts: Counter[str] = Counter()
    problems: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.jsonl")):
        judge = Judge()
        for number, message in enumerate(recording.read(path), start=1):
            for verdict in judge.judge(message):
                counts[verdict.kind] += 1
                problems[verdict.kind] += [f"{path.name}:{number}: {problem}" for problem in verdict.problems]
    for kind in sorted(counts):
        print(f"{'FAIL' if problems[kind] else 'ok  '} {kind} ({counts[kind]} messages)")
        for problem in problems[kind][:PROBLEMS_PRINTED_PER_CHECK]:
            print(f"     {problem}")
        if (more := len(problems[kind]) - PROBLEMS_PRINTED_PER_CHECK) > 0:
            print(f"     and {more} more")
    failed = sum(1 for kind in counts if problems[kind])
    if not counts:
        print("FAIL nothing was recorded")
        failed = 1
    print(f"{counts.total()} messages of the server in {len(counts)} kinds")
    print(f"{len(counts) - failed if counts else 0} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
