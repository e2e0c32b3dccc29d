"""Lines of the acceptance list about the protocol. The node implements it; handlers must not change it."""

import json

from caller import Caller
from lines import World, error_of, line, result_of

NEWEST_LEGACY = Caller.LEGACY
# Sent without the recording proxy, because the validator would report these violations of the protocol.
IDS = ['"ok1"', "7", "1.5", "42", "12345678901234567890123", '"7"']
NO_IDS = ["null", "true", "{}", "[1]"]
NO_REQUESTS = {
    '{"id": 1, "method": "ping"}': -32600,
    '{"jsonrpc": "1.0", "id": 1, "method": "ping"}': -32600,
    '{"jsonrpc": "2.0", "id": 1}': -32600,
    '{"jsonrpc": "2.0", "id": 1, "method": 5}': -32600,
    "[]": -32600,
    '"text"': -32600,
    "5": -32600,
    "null": -32600,
    "true": -32600,
    "": -32700,
}


def session(world: World) -> Caller:
    """A legacy client whose session is open."""
    caller = world.node.caller(revision=Caller.LEGACY, direct=True)
    caller.request("ping")
    return caller


@line("P1", "initialize with the oldest revision")
def oldest(world: World) -> None:
    answer = world.node.caller(revision="2024-11-05").initialize("2024-11-05")
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", "init"), answer
    result = result_of(answer)
    assert result["protocolVersion"] == "2024-11-05" and result["serverInfo"]["name"], answer
    assert {"tools", "resources", "prompts"} <= result["capabilities"].keys(), answer


@line("P2", "initialize without a revision")
def no_revision(world: World) -> None:
    answer = world.node.caller(revision=Caller.LEGACY, direct=True).initialize(None)
    assert error_of(answer)["code"] == -32602, answer


@line("P3", "initialize with an unknown revision")
def unknown_revision(world: World) -> None:
    answer = world.node.caller(revision=Caller.LEGACY).initialize("1999-01-01")
    assert result_of(answer)["protocolVersion"] == NEWEST_LEGACY, answer


@line("P4", "initialize with an older revision")
def older_revision(world: World) -> None:
    answer = world.node.caller(revision="2025-06-18").initialize("2025-06-18")
    assert result_of(answer)["protocolVersion"] == "2025-06-18", answer


@line("P5", "ping")
def ping(world: World) -> None:
    answer = world.caller(None, Caller.LEGACY).request("ping", {}, "p")
    assert answer == {"jsonrpc": "2.0", "id": "p", "result": {}}, answer


@line("P6", "a message without an id has no answer")
def notifications(world: World) -> None:
    caller = session(world)
    for text in (
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "well", "arguments": {}}}',
    ):
        response = caller.post(text)
        assert (response.status, response.text) == (202, ""), response
    written = world.database.query("SELECT count(*) FROM written WHERE handler = 'well'")
    assert written == "0", "a call without an id was executed"
    answer = caller.post('{"jsonrpc": "2.0", "id": 5, "method": "notifications/initialized"}').message
    assert error_of(answer)["code"] == -32601 and answer["id"] == 5, answer


@line("P7", "the lists")
def lists(world: World) -> None:
    expected = {
        "tools": {"name", "inputSchema"},
        "resources": {"name", "uri"},
        "resourceTemplates": {"name", "uriTemplate"},
        "prompts": {"name"},
    }
    for caller in world.both():
        for kind, members in expected.items():
            entries = caller.list_entries(kind)
            assert entries, f"{kind} of {caller.revision} is empty"
            assert all(members <= entry.keys() for entry in entries.values()), entries


@line("P8", "an unknown method")
def unknown_method(world: World) -> None:
    for caller in world.both():
        answer = caller.request("tools/fly")
        assert error_of(answer)["code"] == -32601, answer


@line("P9", "what is no request")
def no_request(world: World) -> None:
    caller = session(world)
    for text, code in NO_REQUESTS.items():
        answer = caller.post(text).message
        assert error_of(answer)["code"] == code, f"{text!r}: {answer}"


@line("P10", "what is no id")
def no_id(world: World) -> None:
    caller = session(world)
    for request_id in NO_IDS:
        answer = caller.post(f'{{"jsonrpc": "2.0", "id": {request_id}, "method": "ping"}}').message
        assert error_of(answer)["code"] == -32600 and answer["id"] is None, f"{request_id}: {answer}"


@line("P11", "ids of all types, of pings and of calls that reach a handler")
def ids(world: World) -> None:
    caller = session(world)
    call = '{"name": "echo", "arguments": {"message": "x"}}'
    for request_id in IDS:
        for method, params in (("ping", "{}"), ("tools/call", call)):
            text = f'{{"jsonrpc": "2.0", "id": {request_id}, "method": "{method}", "params": {params}}}'
            response = caller.post(text)
            # Compared as text, because Python would convert the number.
            assert f'"id":{request_id}' in response.text.replace(": ", ":"), f"{request_id}: {response.text}"
            assert json.loads(response.text)["result"] is not None, response.text
