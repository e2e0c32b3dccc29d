"""Lines of the acceptance list about adding, changing and removing handlers, and about their transactions and arguments."""

import json
import subprocess

from bridged import SCHEMA, run_node, tool, wait_until
from caller import Caller
from lines import World, error_of, failure_of, line, result_of, text_of


def register_text(world: World, name: str, text: str, **more: object) -> None:
    world.database.register(*tool(name, text, **more))


def wait_for_text(world: World, name: str, text: str) -> None:
    """Waits until a tool answers with this text."""
    caller = world.caller()

    def has_text() -> bool:
        answer = caller.call(name)
        return "result" in answer and text_of(answer) == text

    wait_until(has_text, f"{name} answers {text}")


def wait_until_removed(world: World, name: str) -> None:
    """Waits until a tool is not listed, and checks that it cannot be called."""
    caller = world.caller()
    wait_until(lambda: name not in caller.names(), f"{name} is removed")
    assert error_of(caller.call(name))["code"] == -32602


@line("L1", "the body and the description of the next registration count")
def replaced(world: World) -> None:
    register_text(world, "one", "first", id="an id of any text, really")
    wait_for_text(world, "one", "first")
    register_text(world, "one", "second", id="an id of any text, really", description="It changed.")
    wait_for_text(world, "one", "second")
    # The body is the database's own and new at once; the list follows.
    caller = world.caller()
    wait_until(lambda: caller.list_entries("tools")["one"].get("description") == "It changed.", "the description is listed")


@line("L2", "the old name is no tool any more, and its function no function")
def renamed(world: World) -> None:
    register_text(world, "before", "x", id="renamed")
    wait_for_text(world, "before", "x")
    register_text(world, "after", "y", id="renamed")
    wait_for_text(world, "after", "y")
    wait_until_removed(world, "before")
    functions = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'api'::regnamespace"
    left = world.database.query(f"{functions} AND starts_with(proname, 'mcp_tool_before_')")
    assert left == "0", left


@line("L3", "a taken name")
def collided(world: World) -> None:
    register_text(world, "taken", "mine", id="owner of the name")
    wait_for_text(world, "taken", "mine")
    text = world.database.refusal(world.database.registration(*tool("taken", "stolen", id="another")))
    assert "name:" in text and '"owner of the name"' in text, text
    assert text_of(world.caller().call("taken")) == "mine"


@line("L4", "four names")
def look_alikes(world: World) -> None:
    names = ["a.b", "a-b", "a_b", "A_B"]
    for name in names:
        register_text(world, name, f"I am {name}")
    for name in names:
        wait_for_text(world, name, f"I am {name}")
    assert set(names) <= world.caller(None, Caller.LEGACY).names()


@line("L5", "removed from lists and calls, and back in both")
def dropped(world: World) -> None:
    register_text(world, "fleeting", "here")
    wait_for_text(world, "fleeting", "here")
    assert world.database.query("SELECT api.drop_mcp_handler('fleeting')") == "t"
    wait_until_removed(world, "fleeting")
    register_text(world, "fleeting", "again")
    wait_for_text(world, "fleeting", "again")
    assert "fleeting" in world.caller().names()


@line("L5", "what was dropped a moment ago is a tool that is not there")
def just_dropped(world: World) -> None:
    world.database.register(*tool("brief", "x"))
    rows = {"type": "tool", "name": "brief_rows", "requiresAuth": False, "rows": True}
    world.database.register(rows, "SELECT 1 AS n")
    caller = world.caller()
    for name in ("brief", "brief_rows"):
        wait_until(lambda: "result" in caller.call(name), f"{name} is there")
        world.database.query(f"SELECT api.drop_mcp_handler('{name}')")
        # The node may have wait_for_text of it by now, or not: then the database register_text so.
        answer = caller.call(name)
        text = answer["error"]["message"] if "error" in answer else failure_of(answer)
        # A handler with rows is reported as missing by a statement that does not know its name.
        assert f'there is no tool "{name}"' in text or "the tool no longer exists" in text, answer


@line("L6", "what is not committed is not there; two that are committed together come together")
def atomic(world: World) -> None:
    first = world.database.registration(*tool("together_1", "x"))
    second = world.database.registration(*tool("together_2", "x"))
    rolled_back = world.database.registration(*tool("rolled_back", "x"))
    world.database.query(f"BEGIN; {rolled_back}; ROLLBACK")
    session = subprocess.Popen(world.database.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert session.stdin and session.stdout
    session.stdin.write(f"BEGIN; {first}; {second};\n")
    session.stdin.flush()
    assert session.stdout.readline().strip() == "together_1" and session.stdout.readline().strip() == "together_2"
    caller = world.caller()
    assert not caller.names() & {"together_1", "together_2", "rolled_back"}
    session.stdin.write("COMMIT;\n")
    session.stdin.close()
    seen: list[int] = []
    wait_until(lambda: seen.append(len(caller.names() & {"together_1", "together_2"})) or seen[-1] == 2, "both are listed")
    assert set(seen) <= {0, 2}, f"one came without the other: {seen}"
    assert session.wait() == 0 and "rolled_back" not in caller.names()


@line("T1", "of read committed, repeatable read, serializable, read only")
def policy(world: World) -> None:
    expected = {
        "in_any": ("read committed", "off", "off"),
        "in_reads": ("read committed", "on", "off"),
        "in_middle": ("repeatable read", "off", "off"),
        "in_strict": ("serializable", "off", "off"),
    }
    for name, transaction in expected.items():
        assert transaction_of(world, name) == transaction, name


@line("T2", "serializable, and read only")
def deferrable(world: World) -> None:
    assert transaction_of(world, "in_strict_reads") == ("serializable", "on", "on")


def transaction_of(world: World, name: str) -> tuple[str, str, str]:
    text = result_of(world.caller().call(name))["structuredContent"]
    return text["isolation"], text["readOnly"], text["deferrable"]


@line("T3", "a handler that is declared read-only")
def writes_though_it_reads(world: World) -> None:
    for caller in world.both():
        answer = caller.call("writes_though_it_reads")
        failed = "error" in answer or answer["result"].get("isError")
        assert failed and "write_in_read_only_handler" in json.dumps(answer), answer
    assert world.database.query("SELECT count(*) FROM written WHERE handler = 'writes_though_it_reads'") == "0"


@line("T3", "a node that lets no handler write")
def node_that_reads(world: World) -> None:
    with run_node(world.database, handlers=SCHEMA) as node:
        for revision in Caller.REVISIONS:
            caller = node.caller(revision=revision)
            assert text_of(caller.call("echo", {"message": "hello"})) == "Echo: hello"
            answer = caller.call("well")
            assert "error" in answer or answer["result"].get("isError"), answer
            text = result_of(caller.call("in_any"))["structuredContent"]
            assert text["readOnly"] == "on", text
    # Another check has written some.
    assert world.database.query("SELECT count(*) FROM written WHERE handler = 'well'") == "2"


@line("V1", "arguments of a tool")
def arguments(world: World) -> None:
    wrong: list[tuple[dict, set[str]]] = [
        ({}, {"name", "count"}),
        ({"name": "ab"}, {"count"}),
        ({"name": 5, "count": "x"}, {"name", "count"}),
        ({"name": None, "count": None}, {"name", "count"}),
        ({"name": "a", "count": 0, "more": 1}, {"name", "count", "more"}),
        ({"name": "ab", "count": 1, "deep": {"list": [True, 7]}}, {"deep"}),
    ]
    for caller in world.both():
        for given, named in wrong:
            text = failure_of(caller.call("checked", given))
            assert all(word in text for word in named), f"{given}: {text}"
        text = failure_of(caller.call("checked", {"name": "a", "count": 0, "more": 1, "deep": 5}))
        assert len([each for each in text.splitlines() if each.startswith("- ")]) == 4, text
        assert error_of(caller.request("tools/call", {"name": "checked", "arguments": []}))["code"] == -32602
        assert error_of(caller.request("tools/call", {"name": "checked", "arguments": "x"}))["code"] == -32602
    assert world.database.query("SELECT is_called FROM checked_ran") == "f", "the handler ran"
    assert result_of(world.caller().call("checked", {"name": "ab", "count": 1}))["structuredContent"]["count"] == 1
    assert world.database.query("SELECT is_called FROM checked_ran") == "t"


@line("V1", "arguments of a prompt")
def prompt_arguments(world: World) -> None:
    for caller in world.both():
        error = error_of(caller.get("help", {"task": 5, "tone": "warm", "mood": "good", "weather": "fine"}))
        assert error["code"] == -32602, error
        assert all(word in error["message"] for word in ("task", "mood", "weather")), error
        error = error_of(caller.get("help"))
        assert error["code"] == -32602 and "task" in error["message"], error
    assert world.database.query("SELECT is_called FROM prompts_got") == "f", "the handler ran"
    messages = result_of(world.caller().get("help", {"task": "t"}))["messages"]
    assert messages == [{"role": "user", "content": {"type": "text", "text": "t"}}], messages


@line("V1", "U+0000, which no value of the database can hold")
def null_character(world: World) -> None:
    for caller in world.both():
        text = failure_of(caller.call("echo", {"message": "a\0b"}))
        assert "internal" not in text and "message" in text, text
        error = error_of(caller.get("help", {"task": "a\0b"}))
        assert error["code"] == -32602 and "task" in error["message"], error
        error = error_of(caller.read("app:///%00"))
        assert error["code"] == (-32602 if caller.revision == Caller.MODERN else -32002), error


@line("V2", "slashes, letters beyond ASCII, and what cannot be decoded")
def decoded(world: World) -> None:
    for caller in world.both():
        contents = result_of(caller.read("app:///q%2Fr/x/%C3%A4"))["contents"]
        assert contents[0]["text"] == 'deep {"a": "q/r", "b": "ä"}', contents
        assert contents[0]["uri"] == "app:///q%2Fr/x/%C3%A4", contents
        for uri in ("app:///%ff", "app:///%zz"):
            error = error_of(caller.read(uri))
            assert error["code"] == (-32602 if caller.revision == Caller.MODERN else -32002), f"{uri}: {error}"
