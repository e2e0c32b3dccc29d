"""Lines of the acceptance list about callers and their access."""

import json
from http import HTTPStatus

import jwt
from bridged import AUDIENCE, ISSUER, ROLES, run_node, wait_until
from caller import Caller
from lines import World, error_of, line, result_of, text_of

AUTHENTICATION_REQUIRED = -32001
CLOSED = {"tools": "closed", "resources": "closed", "resourceTemplates": "closed_each", "prompts": "closed"}


def call_closed(caller: Caller) -> list[dict]:
    """The answers of the handlers that require authentication."""
    return [
        caller.call("closed"),
        caller.read("closed:///one"),
        caller.read("closed:///each/7"),
        caller.get("closed"),
    ]


@line("A1", "an anonymous caller")
def anonymous(world: World) -> None:
    for caller in world.both():
        for answer in call_closed(caller):
            assert error_of(answer)["code"] == AUTHENTICATION_REQUIRED, answer


@line("A1", "context that a client forges")
def forged_context(world: World) -> None:
    claimed = {"user_id": "mallory", "tenant_id": "north"}
    for extra in ({"context": claimed}, {"_meta": {**claimed, "context": claimed}}, claimed):
        caller = world.caller(None, Caller.LEGACY)
        answer = caller.request("tools/call", {"name": "closed", "arguments": {}, **extra})
        assert error_of(answer)["code"] == AUTHENTICATION_REQUIRED, answer
        who = result_of(caller.request("tools/call", {"name": "who", "arguments": {}, **extra}))["structuredContent"]
        assert "mallory" not in json.dumps(who), who


@line("A1", "keys and tokens that are none")
def forged_credentials(world: World) -> None:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "mallory", "role": "staff", "exp": 4_000_000_000}
    signed_by_another = jwt.encode(claims, "x" * 64, algorithm="HS256")
    unsigned = jwt.encode(claims, None, algorithm="none")
    expired = jwt.encode(claims | {"exp": 1_000_000_000}, world.node.secret, algorithm="HS256")
    for credential in (signed_by_another, unsigned, expired, "mallory", world.node.keys["staff"] + "x"):
        caller = Caller(world.node.direct, credential)
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "closed"}})
        response = caller.post(text, "tools/call", "closed")
        caller.close()
        assert response.status == HTTPStatus.UNAUTHORIZED, response


@line("A1", "callers unknown to the database: its own check decides")
def unknown_to_the_database(world: World) -> None:
    world.database.query("SELECT api.set_mcp_identity_check('public.is_employee(jsonb)')")
    try:
        ann, ben, nobody = (world.caller(who) for who in ("ann@north", "ben@north", None))
        # The node reads the check with the handlers.
        wait_until(lambda: "result" not in ben.read("closed:///one"), "the check counts")
        assert text_of(ann.call("closed")) == "ann@north"
        for answer in [*call_closed(ben), *call_closed(nobody)]:
            assert error_of(answer)["code"] == AUTHENTICATION_REQUIRED, answer
        for caller in (ben, nobody):
            result = result_of(caller.call("who"))["structuredContent"]
            assert not result["user"] and not result["tenant"] and "ben" not in json.dumps(result), result
            (result,) = json.loads(text_of(caller.call("who_in_rows")))
            assert not result["user"] and not result["tenant"], result
    finally:
        world.database.query("SELECT api.set_mcp_identity_check(NULL)")
    wait_until(lambda: "result" in world.caller("ben@north").read("closed:///one"), "the check counts no more")


@line("A2", "anonymously, with a key, with a token")
def public(world: World) -> None:
    for who in (None, "staff", "auditor", "ann@north"):
        for caller in world.both(who):
            assert text_of(caller.call("echo", {"message": "hello"})) == "Echo: hello"


@line("A3", "calls and lists of several callers in turn over one connection")
def no_bleeding(world: World) -> None:
    expected = {
        "ann@north": ("ann", "north", "mcp_staff"),
        None: ("", "", "mcp_public"),
        "ben@south": ("ben", "south", "mcp_staff"),
        "eve@": ("eve", "", "mcp_staff"),
    }
    with run_node(world.database, connections=1) as node:
        callers = {who: node.caller(who) for who in expected}
        # All pairs of callers, including equal ones.
        for first in expected:
            for second in expected:
                for who in (first, second):
                    result = result_of(callers[who].call("who"))["structuredContent"]
                    assert (result["user"] or "", result["tenant"] or "", result["role"]) == expected[who], f"{who}: {result}"
                    assert ("closed" in callers[who].names()) == (who is not None), who


@line("A3", "the context matches the settings")
def context(world: World) -> None:
    result = result_of(world.caller("ann@north").call("who"))["structuredContent"]
    assert (result["context"]["user_id"], result["context"]["tenant_id"]) == ("ann", "north"), result
    result = result_of(world.caller().call("who"))["structuredContent"]
    assert not (result["context"] or {}).get("user_id") and not (result["context"] or {}).get("tenant_id"), result


@line("A4", "lists of anonymous and authenticated callers, and calls that agree with them")
def lists_agree(world: World) -> None:
    for caller in world.both():
        for kind, name in CLOSED.items():
            assert name not in caller.names(kind), f"{kind} of {caller.revision}"
    for caller in world.both("staff"):
        for kind, name in CLOSED.items():
            assert name in caller.names(kind), f"{kind} of {caller.revision}"
        answers = call_closed(caller)
        assert text_of(answers[0]) == "staff@", answers[0]
        assert result_of(answers[1])["contents"][0]["text"] == "for somebody", answers[1]
        assert result_of(answers[2])["contents"][0]["text"] == "7", answers[2]
        assert result_of(answers[3])["messages"][0]["content"]["text"] == "for somebody", answers[3]


@line("A6", "in SQL, a role without the grant does neither, and one with it does not register")
def ungranted_in_sql(world: World) -> None:
    ping = """SELECT api.mcp_handle_request('{"jsonrpc": "2.0", "id": 1, "method": "ping"}')"""
    evil = world.database.registration({"type": "tool", "name": "evil"}, "BEGIN END")
    for role, sql in (("mcp_stranger", ping), ("mcp_stranger", evil), ("mcp_staff", evil)):
        result = world.database.refusal(sql, role)
        assert "permission denied" in result, f"{role}: {result}"


@line("A6", "over MCP, a role without the grant has no handlers, and does not affect others")
def ungranted_over_mcp(world: World) -> None:
    world.database.query("GRANT mcp_stranger TO mcp_node")
    with run_node(world.database, roles={**ROLES, "stranger": "mcp_stranger"}) as node:
        stranger = Caller(node.url, node.token("eve", "north", "stranger"))
        assert not stranger.names() and not stranger.names("prompts"), stranger.names()
        known = error_of(stranger.call("echo", {"message": "x"}))
        assert error_without_name("echo", known) == error_without_name("ecko", error_of(stranger.call("ecko"))), known
        stranger.close()
        assert text_of(node.caller("staff").call("echo", {"message": "hello"})) == "Echo: hello"


@line("A6", "a handler of certain roles looks unknown to others")
def of_certain_roles(world: World) -> None:
    for auditor in world.both("auditor"):
        assert "audit" in auditor.names() and result_of(auditor.call("audit"))["content"] == []
    for who in (None, "staff"):
        for caller in world.both(who):
            assert "audit" not in caller.names()
            known, unknown = error_of(caller.call("audit")), error_of(caller.call("audix"))
            assert unknown["code"] == -32602 and error_without_name("audit", known) == error_without_name("audix", unknown), known
            assert "audit" not in known["message"].partition("Valid choices")[2], known


def error_without_name(name: str, error: dict) -> dict:
    """An error about a name, without the name itself and similar names."""
    message = error["message"].partition("\nValid choices: ")[0]
    assert name in message, error
    return {**error, "message": message.replace(name, "NAME")}
