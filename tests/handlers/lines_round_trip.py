"""Lines of the acceptance list about handlers that are listed and called, and the examples of the design."""

import json

from bridged import wait_until
from caller import Caller
from lines import World, error_of, failure_of, line, result_of, text_of

BAD_SCHEMAS = [
    '"nonsense"',
    "true",
    '{"type": "string"}',
    "[]",
    "null",
    '{"type": "object", "properties": {"a": {"type": "strin"}}}',
    '{"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": [{"type": "nope"}]}}}}',
]


@line("R1", "echo is listed as it was registered, and answers")
def echo(world: World) -> None:
    for caller in world.both():
        entry = caller.list_entries("tools")["echo"]
        assert entry["description"] == "Says it again." and entry["annotations"]["readOnlyHint"] is True, entry
        assert entry["inputSchema"]["required"] == ["message"], entry
        answer = caller.call("echo", {"message": "hello"}, "e")
        assert answer["id"] == "e" and text_of(answer).startswith("Echo: hello"), answer


@line("R2", "resources by template and by uri")
def resource_lists(world: World) -> None:
    for caller in world.both():
        templates = caller.list_entries("resourceTemplates")
        assert templates["deep"]["uriTemplate"] == "app:///{a}/x/{b}", templates
        assert templates["deep"]["mimeType"] == "text/plain", templates
        resources = caller.list_entries("resources")
        assert resources["plain"]["uri"] == "app:///plain", resources
        assert all("{" not in entry["uri"] and "uriTemplate" not in entry for entry in resources.values()), resources
        assert not resources.keys() & {"one", "other", "deep"}, resources


def read_text(caller: Caller, uri: str) -> str:
    contents = result_of(caller.read(uri))["contents"]
    assert len(contents) == 1 and contents[0]["uri"] == uri, contents
    return contents[0]["text"]


@line("R3", "the longer template, and a plain uri before all")
def overlapping(world: World) -> None:
    for caller in world.both():
        assert read_text(caller, "app:///something").startswith("other "), "{a} answered"
        assert read_text(caller, "app:///plain") == "plain {}", "a template answered"


@line("R4", "no inputSchema")
def no_schema(world: World) -> None:
    for caller in world.both():
        assert caller.list_entries("tools")["bare"]["inputSchema"]["type"] == "object"
        assert text_of(caller.call("bare")) == "bare"


@line("R5", "bad schemas")
def bad_schemas(world: World) -> None:
    body = "BEGIN RETURN NULL; END"
    for schema in BAD_SCHEMAS:
        metadata = {"type": "tool", "name": "badly_typed", "inputSchema": json.loads(schema)}
        message = world.database.refusal(world.database.registration(metadata, body))
        assert "inputSchema" in message, f"{schema}: {message}"
    # A later registration is listed, so the earlier ones have been processed.
    world.database.register({"type": "tool", "name": "after_bad", "requiresAuth": False}, body)
    wait_until(lambda: "after_bad" in world.caller().names(), "after_bad is listed")
    assert "badly_typed" not in world.caller().names()


@line("R6", "no uriTemplate")
def no_template(world: World) -> None:
    registration = world.database.registration({"type": "resource", "name": "nowhere"}, "BEGIN END")
    message = world.database.refusal(registration)
    assert "uriTemplate" in message, message
    assert "nowhere" not in world.caller().names("resources") | world.caller().names("resourceTemplates")


@line("R7", "structured answers")
def structured(world: World) -> None:
    for caller in world.both():
        assert caller.list_entries("tools")["typed"]["outputSchema"]["required"] == ["a"]
        result = result_of(caller.call("typed", {"a": None, "b": [None]}))
        assert result["structuredContent"] == {"a": None, "b": [None]}, result
        answer = caller.call("typed", {"a": "CANARY"})
        assert "error" in answer or answer["result"]["isError"], f"outputSchema is not enforced: {answer}"
        assert "structuredContent" not in answer.get("result", {}), answer


@line("R8", "tags")
def tags(world: World) -> None:
    for caller in world.both():
        entry = caller.list_entries("tools")["echo"]
        assert entry["_meta"]["tags"] == ["a", "b"] and "tags" not in entry, entry


@line("R9", "text, picture, link and embedded resource")
def blocks(world: World) -> None:
    for caller in world.both():
        content = result_of(caller.call("blocks"))["content"]
        assert [block["type"] for block in content] == ["text", "image", "resource_link", "resource"], content
        assert (content[0]["text"], content[1]["data"], content[1]["mimeType"]) == ("one", "aGk=", "image/png"), content
        assert (content[2]["uri"], content[2]["name"]) == ("app:///plain", "plain"), content
        assert content[3]["resource"] == {"uri": "app:///plain", "mimeType": "text/plain", "text": "hi"}, content


@line("R10", "as an array, and as lines")
def rows(world: World) -> None:
    for caller in world.both():
        for count in (0, 1, 500):
            expected = [{"n": n, "label": f"r{n}", "nothing": None} for n in range(1, count + 1)]
            result = result_of(caller.call("rows", {"count": count}))
            assert json.loads(result["content"][0]["text"]) == expected, result["content"]
            assert result["_meta"]["dev.tidegate/rows"] == count, result["_meta"]
            lines = text_of(caller.call("rows", {"count": count, "format": "ndjson"})).splitlines()
            assert [json.loads(each) for each in lines] == expected, lines


@line("R10", "more rows than an answer takes: as many as fit, and how to get the others")
def many_rows(world: World) -> None:
    caller = world.caller()
    numbers: list[int] = []
    # Without streaming, each of these calls would take minutes.
    arguments = {"count": 100_000_000}
    for _ in range(3):
        result = result_of(caller.call("rows", arguments))
        page = json.loads(result["content"][0]["text"])
        meta = result["_meta"]
        assert meta["dev.tidegate/truncated"] and meta["dev.tidegate/rows"] == len(page), meta
        numbers += [row["n"] for row in page]
        arguments["cursor"] = meta["dev.tidegate/cursor"]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 300, f"{len(numbers)} rows"


@line("R11", "a function of the database as a tool")
def function_tool(world: World) -> None:
    for caller in world.both():
        entry = caller.list_entries("tools")["add"]
        assert entry["description"] == "Adds." and entry["inputSchema"]["required"] == ["a"], entry
        assert result_of(caller.call("add", {"a": 1}))["structuredContent"] == {"result": 11}
        assert result_of(caller.call("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}
        assert "a" in failure_of(caller.call("add", {"b": 2}))


@line("S1", "my_tool, my_prompt, and my_resource whose body leaves its text NULL")
def registered(world: World) -> None:
    for caller in world.both("staff"):
        assert caller.list_entries("tools")["my_tool"]["inputSchema"]["required"] == ["param1"]
        assert text_of(caller.call("my_tool", {"param1": "p"})) == "Result: p"
        messages = result_of(caller.get("my_prompt", {"task": "t"}))["messages"]
        assert messages == [{"role": "user", "content": {"type": "text", "text": "Help me with: t"}}], messages
        assert caller.list_entries("resourceTemplates")["my_resource"]["uriTemplate"] == "postgres:///{schema}/{table}"
        contents = result_of(caller.read("postgres:///public/orders"))["contents"]
        assert [content["text"] for content in contents] == [""], contents


@line("S1", "requiresAuth is true by default")
def closed_by_default(world: World) -> None:
    for caller in world.both():
        for answer in (
            caller.call("my_tool", {"param1": "p"}),
            caller.call("protected_tool"),
            caller.get("my_prompt", {"task": "t"}),
            caller.read("postgres:///public/orders"),
        ):
            assert error_of(answer)["code"] == -32001, answer


@line("S1", "test_tool, database_info, protected_tool and the fragments of bodies")
def fragments(world: World) -> None:
    for caller in world.both("staff"):
        assert text_of(caller.call("test_tool", {}, "test-req-1")) == "success"
        assert text_of(caller.call("database_info")) == world.database.query("SELECT current_database()")
        assert result_of(caller.call("protected_tool"))["content"] == []
        assert text_of(caller.call("identity")), "auth.user_id is empty"
        content = result_of(caller.call("two_blocks"))["content"]
        assert [block["text"] for block in content] == ["Operation completed", "Processed 42 records"], content
        assert failure_of(caller.call("badly")) == "Error: division by zero"
        assert caller.call("keeps_id", {}, "i") | {"result": None} == {"jsonrpc": "2.0", "id": "i", "result": None}
        assert failure_of(caller.call("not_found", {"name": "x"})) == "Tool not found: x"
