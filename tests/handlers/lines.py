"""The acceptance list of handlers, line by line, tested in SQL (crates/postgres-handlers/sql/tests) and here through MCP.

`@line` assigns a check to a line; a line without a check is a failure. Brackets explain the meaning over MCP where it
differs from that of the SQL dispatcher.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from bridged import Database, Node
from caller import Caller
from report import Report

LINES = {
    # Protocol
    "P1": "initialize 2024-11-05 gives jsonrpc 2.0, the id, that version, serverInfo and capabilities",
    "P2": "initialize without protocolVersion is -32602",
    "P3": "initialize 1999-01-01 is no error, the newest legacy version comes back",
    "P4": "initialize 2025-06-18 comes back",
    "P5": "ping has an id and a result",
    "P6": "notifications/initialized has no answer, nor has any request without an id [with an id it is a request of that "
    "name over MCP, of which there is none: -32601 and no result]",
    "P7": "lists of tools, resources, templates and prompts have their members",
    "P8": "an unknown method is -32601",
    "P9": "missing jsonrpc, missing method, nothing, an array, a string, a number and null are no request: -32600 [nothing "
    "at all is no JSON over HTTP: -32700]",
    "P10": "the ids null, true, an object and an array are -32600 with id null and no result",
    "P11": "ids come back exactly, as the type they were",
    # Round trip
    "R1": "a registered echo tool is listed, and its first text starts with Echo: hello",
    "R2": "resources/templates/list has name and uriTemplate, resources/list concrete uris alone",
    "R3": "of the templates {a} and {aa} the longer one's handler answers",
    "R4": "an absent inputSchema is listed as an object schema",
    "R5": "what is no schema, at any depth, is refused [at registration; the list stays]",
    "R6": "a resource without uriTemplate is refused [at registration; the list stays]",
    "R7": "outputSchema is listed and enforced, structuredContent keeps its nulls",
    "R8": "tags are under _meta.tags, never at the top",
    "R9": "blocks of all kinds come as the handler made them",
    "R10": "rows come in the requested format, with their number",
    "R11": "a function that was registered is a tool with a schema from its types",
    # Authorization
    "A1": "no context, an identity that resolves to nobody, a forged one: -32001 [over HTTP: nobody is an anonymous caller; "
    "a key or a token that is none is rejected with 401]",
    "A2": "a public tool works for all",
    "A3": "no identity bleeds into the next call or list on a pooled connection",
    "A4": "lists hide what calls refuse, and show it to who may",
    "A5": "an error's SQL text never reaches the caller",
    "A6": "a role without the grant can neither dispatch nor register [registering is SQL's; over MCP its handlers are not "
    "there, neither to see nor to call]",
    # Errors
    "E1": "a handler that raises: no protocol error, isError, the same id, a neutral text, the detail in the exchange log",
    "E2": "RETURN NULL, a wrong envelope, a wrong id: an internal error, with an answer [of a tool, a result that says so]",
    "E3": "ASSERT, statement timeout, cancel: caught",
    "E4": "a returned tool error rolls its writes back unless opted out",
    "E5": "40001 and 40P01 are retried, then reported",
    # Lifecycle
    "L1": "the same id again replaces",
    "L2": "a rename drops the old function and the old name",
    "L3": "a name collision names its owner [at registration; the first one stays]",
    "L4": "names that look alike stay apart: a.b, a-b, a_b and A_B",
    "L5": "dropped and registered again it is back",
    "L6": "the registry changes with the transaction",
    # Transaction policy
    "T1": "the floor decides the transaction [clients cannot request one; in SQL they can]",
    "T2": "SERIALIZABLE READ ONLY becomes deferrable",
    "T3": "a write in a read-only tool is refused with a machine-readable code [an isolation is never too weak, since the "
    "node begins the transaction]",
    # Arguments
    "V1": "missing, wrong type, null, array instead of object, unknown prompt argument: refused before the handler runs, "
    "all violations at once",
    "V2": "URI variables arrive percent-decoded",
    # The design's own examples
    "S1": "handlers of the design work as they are written there [an error with a code is a result that says so, of a tool]",
}


@dataclass
class World:
    """The database and the node under test."""

    database: Database
    node: Node
    _callers: dict[tuple[str | None, str], Caller] = field(default_factory=dict)

    def caller(self, who: str | None = None, revision: str = Caller.MODERN) -> Caller:
        """Returns the same caller each time."""
        if (who, revision) not in self._callers:
            self._callers[who, revision] = self.node.caller(who, revision)
        return self._callers[who, revision]

    def both(self, who: str | None = None) -> list[Caller]:
        """A modern and a legacy client."""
        return [self.caller(who, revision) for revision in Caller.REVISIONS]


Check = Callable[[World], None]
CHECKS: list[tuple[str, str, Check]] = []


def line(key: str, name: str) -> Callable[[Check], Check]:
    """Registers a function as a check of that line; the check fails when the function raises."""
    assert key in LINES, key

    def add(check: Check) -> Check:
        CHECKS.append((key, name, check))
        return check

    return add


def run(world: World, report: Report) -> None:
    order = list(LINES)
    for key, name, check in sorted(CHECKS, key=lambda entry: order.index(entry[0])):
        with report.check(f"{key} {name}"):
            check(world)
    checked = {key for key, _, _ in CHECKS}
    with report.check("every line of the list is checked"):
        assert checked == LINES.keys(), f"without a check: {LINES.keys() - checked}"


def error_of(answer: dict) -> dict:
    assert "error" in answer and "result" not in answer, answer
    return answer["error"]


def result_of(answer: dict) -> dict:
    assert "result" in answer and "error" not in answer, answer
    return answer["result"]


def text_of(answer: dict) -> str:
    """The first text of a successful tool result."""
    result = result_of(answer)
    assert not result.get("isError"), answer
    return result["content"][0]["text"]


def failure_of(answer: dict) -> str:
    """The texts of a failed tool result."""
    result = result_of(answer)
    assert result.get("isError") is True, answer
    return "\n".join(block["text"] for block in result["content"])
