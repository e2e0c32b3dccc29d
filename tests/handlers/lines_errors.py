"""Lines of the acceptance list about failures: there is always an answer, without internal details, and nothing is written."""

import json
import threading

from bridged import wait_until
from caller import Caller
from lines import World, error_of, failure_of, line, result_of, text_of

RAISING = ["raises", "divides", "misses", "falls_off", "ends_transaction", "inserts_nothing", "insists", "raises_cancel"]
BROKEN = ["null", "null_envelope", "no_jsonrpc", "array", "both", "neither", "no_content", "wrong_content", "text_null"]
BROKEN += ["wrong_id", "null_id", "reserved_code", "text_code", "output", "no_output"]
# Words of SQL error messages and of internal details.
TELLTALES = ["canary", "by zero", "relation", "assert", "control reached", "termination", "violates", "null value"]
TELLTALES += ["plpgsql", "written", "api.mcp_", "sqlstate", "statement timeout", "mcp_staff", "mcp_public", "duplicate key", "some-id"]


def check_neutral(answer: dict) -> None:
    text = json.dumps(answer).lower()
    leaked = [word for word in TELLTALES if word in text]
    assert not leaked, f"{leaked} in {text}"


def check_nothing_written(world: World, handler: str) -> None:
    """Checks from another connection."""
    count = world.database.query(f"SELECT count(*) FROM written WHERE handler = '{handler}'")
    assert count == "0", f"what {handler} wrote is there, {count} times"


@line("E1", "a failed result, with the same id, nothing written")
@line("A5", "of whatever a handler raises")
def raising(world: World) -> None:
    for caller in world.both():
        for name in RAISING:
            answer = caller.call(name, {}, f"id of {name}")
            assert answer["id"] == f"id of {name}", answer
            assert failure_of(answer), answer
            check_neutral(answer)
            check_nothing_written(world, name)


@line("E1", "of resources and prompts, which have no isError, an internal error")
def raising_without_result(world: World) -> None:
    for caller in world.both():
        for answer in (caller.get("fails"), caller.read("fails:///one")):
            assert error_of(answer)["code"] == -32603, answer
            check_neutral(answer)
        check_nothing_written(world, "prompt")
        check_nothing_written(world, "resource")


@line("E1", "a message for the caller reaches it")
def refusing(world: World) -> None:
    for caller in world.both():
        assert failure_of(caller.call("refuses")) == "choose a number below 5"
    check_nothing_written(world, "refuses")


@line("E1", "the detail is in the exchange log, with the caller and the reference of the answer")
def logged(world: World) -> None:
    world.database.query("SELECT api.set_mcp_exchange_log(true)")
    answers_seen: list[dict] = []

    def logged_row() -> str:
        # The node reads the switch with the handlers: calls made before it did are not logged.
        answers_seen.append(world.caller("ann@north").call("raises"))
        row = "SELECT json_build_array(outcome, user_id, tenant_id, detail, reference) FROM api.exchange"
        return world.database.query(f"{row} WHERE name = 'raises' ORDER BY at DESC LIMIT 1")

    outcome, user, tenant, detail, reference = json.loads(wait_until(logged_row, "the failure is logged"))
    assert (outcome, user, tenant) == ("failed", "ann", "north"), (outcome, user, tenant)
    assert "CANARY 42" in detail, detail
    assert any(reference in json.dumps(answer) for answer in answers_seen), f"{reference} in none of {answers_seen}"
    world.database.query("SELECT api.set_mcp_exchange_log(false)")


@line("E1", "a failure at commit is a failure")
def failing_commit(world: World) -> None:
    for caller in world.both():
        answer = caller.call("fails_at_commit")
        failure_of(answer)
        assert "all is well" not in json.dumps(answer), answer
        check_neutral(answer)
    check_nothing_written(world, "fails_at_commit")


@line("E2", "each sort of answer that is none")
def broken(world: World) -> None:
    for caller in world.both():
        for name in BROKEN:
            answer = caller.call(f"broken_{name}", {}, name)
            assert answer["id"] == name, answer
            assert "internal error" in failure_of(answer), f"{name}: {answer}"
            check_neutral(answer)
            check_nothing_written(world, f"broken_{name}")


@line("E2", "answers of resources and prompts that are none")
def broken_without_result(world: World) -> None:
    for caller in world.both():
        prompts = [caller.get("broken"), caller.get("broken_null")]
        for answer in [*prompts, caller.read("broken:///one"), caller.read("broken:///null")]:
            assert error_of(answer)["code"] == -32603, answer
            check_neutral(answer)
    check_nothing_written(world, "broken prompt")
    check_nothing_written(world, "broken resource")


@line("E3", "statementTimeout")
def timing_out(world: World) -> None:
    for caller in world.both():
        answer = caller.call("times_out")
        failure_of(answer)
        check_neutral(answer)
    check_nothing_written(world, "times_out")


def sleeping(world: World) -> bool:
    """Whether a backend is in a handler that sleeps."""
    return world.database.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") != "0"


@line("E3", "a client that disconnects ends its statement, and its writes are rolled back")
def leaving(world: World) -> None:
    caller = world.node.caller()
    caller.send_only("tools/call", {"name": "sleeps", "arguments": {}})
    wait_until(lambda: sleeping(world), "the handler sleeps")
    caller.close()
    wait_until(lambda: not sleeping(world), "the statement is cancelled")
    check_nothing_written(world, "sleeps")
    assert text_of(world.caller().call("bare")) == "bare"


@line("E3", "notifications/cancelled of a legacy client does the same")
def cancelling(world: World) -> None:
    caller = world.node.caller("staff", Caller.LEGACY)
    caller.request("ping")
    second_connection = caller.with_same_session()
    caller.send_only("tools/call", {"name": "sleeps", "arguments": {}}, "to be cancelled")
    wait_until(lambda: sleeping(world), "the handler sleeps")
    second_connection.notify("notifications/cancelled", {"requestId": "to be cancelled", "reason": "enough"})
    wait_until(lambda: not sleeping(world), "the statement is cancelled")
    second_connection.close()
    check_nothing_written(world, "sleeps")
    assert text_of(world.caller("staff").call("bare")) == "bare"


@line("E3", "a backend that is cancelled from elsewhere is a failure like any other")
def cancelled_elsewhere(world: World) -> None:
    answers: list[dict] = []
    caller = world.node.caller()
    thread = threading.Thread(target=lambda: answers.append(caller.call("sleeps")))
    thread.start()
    wait_until(lambda: sleeping(world), "the handler sleeps")
    world.database.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    thread.join()
    failure_of(answers[0])
    check_neutral(answers[0])
    check_nothing_written(world, "sleeps")


@line("E4", "an author's own error comes as it is, and undoes what was written")
def saying(world: World) -> None:
    for caller in world.both():
        assert result_of(caller.call("says"))["content"] == [{"type": "text", "text": "no"}]
        assert failure_of(caller.call("says")) == "no"
        assert failure_of(caller.call("says_more")) == "first\nsecond"
        assert failure_of(caller.call("says_code")) == "no such order"
        for name in ("says", "says_more", "says_code"):
            check_nothing_written(world, name)


@line("E4", "an author's own error of a prompt or a resource keeps its code, and undoes what was written")
def saying_without_result(world: World) -> None:
    for caller in world.both():
        for answer in (caller.get("says"), caller.read("says:///one")):
            error = error_of(answer)
            assert (error["code"], error["message"]) == (4711, "no such order"), error
    check_nothing_written(world, "saying prompt")
    check_nothing_written(world, "saying resource")


@line("E4", "unless the handler opted out; and what went well stays")
def keeping(world: World) -> None:
    for number, caller in enumerate(world.both(), start=1):
        assert failure_of(caller.call("keeps")) == "no"
        assert result_of(caller.call("well"))["content"] == []
        for name in ("keeps", "well"):
            written = world.database.query(f"SELECT count(*) FROM written WHERE handler = '{name}'")
            assert written == str(number), f"{name}: {written}"


def at_once(world: World, name: str) -> list[dict]:
    """Two calls of a handler that wait for each other within it."""
    answers: list[dict] = []
    callers = {own: world.node.caller("staff") for own in ("a", "b")}
    threads = [
        threading.Thread(target=lambda own=own: answers.append(callers[own].call(name, {"own": own}))) for own in callers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@line("E5", "two serializable calls at once: both are done, one after the other")
def skewing(world: World) -> None:
    world.database.query("UPDATE balance SET amount = 0")
    answers = at_once(world, "skews")
    assert [text_of(answer) for answer in answers] == ["done", "done"], answers
    amounts = world.database.query("SELECT string_agg(amount::text, ' ' ORDER BY amount) FROM balance")
    assert amounts == "1 2", f"each read what the other had not written: {amounts}"
    arrivals = int(world.database.query("SELECT last_value FROM skew_arrivals"))
    assert arrivals >= 3, f"nothing was run again, {arrivals} attempts"


@line("E5", "two calls that lock each other out: both are done")
def locking(world: World) -> None:
    world.database.query("UPDATE balance SET amount = 0")
    answers = at_once(world, "locks")
    assert [text_of(answer) for answer in answers] == ["done", "done"], answers
    amounts = world.database.query("SELECT string_agg(amount::text, ' ') FROM balance")
    assert amounts == "2 2", amounts
    arrivals = int(world.database.query("SELECT last_value FROM lock_arrivals"))
    assert arrivals >= 3, f"nothing was run again, {arrivals} attempts"


@line("E5", "a temporary conflict is not reported")
def conflicting_twice(world: World) -> None:
    assert text_of(world.caller().call("conflicts_twice")) == "at last"
    assert world.database.query("SELECT last_value FROM conflicts_attempts") == "3"


@line("E5", "a permanent conflict is reported, after the configured number of attempts")
def conflicting_always(world: World) -> None:
    attempts = 0
    for caller in world.both():
        for name in ("conflicts_always", "deadlocks_always"):
            answer = caller.call(name)
            failure_of(answer)
            check_neutral(answer)
            attempts += 3
            assert world.database.query("SELECT last_value FROM never_attempts") == str(attempts), name
