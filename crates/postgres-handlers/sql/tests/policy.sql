-- In which transaction a handler runs.

CREATE TABLE public.tidegate_test_write (n integer);
SELECT pg_temp.tool('strict', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"minTransactionIsolation": "serializable", "readOnly": true, "statementTimeout": "2s", "retry": 5}');
SELECT pg_temp.tool('middle', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"minTransactionIsolation": "repeatable_read", "retry": false}');
SELECT pg_temp.tool('free', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
SELECT pg_temp.same(api.mcp_transaction_policy('tool', 'strict'),
    '{"isolation": "serializable", "readOnly": true, "deferrable": true, "retries": 5,
    "begin": "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE", "commitOnError": false,
        "statementTimeoutMs": 2000}', 'serializable and read only becomes deferrable');
SELECT pg_temp.same(api.mcp_transaction_policy('tool', 'free') -> 'begin',
    '"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"', 'no policy');
SELECT pg_temp.same(api.mcp_transaction_policy('tool', 'free') -> 'retries', '3', 'retries unless told otherwise');
SELECT pg_temp.same(api.mcp_transaction_policy('tool', 'middle') -> 'retries', '0', 'told otherwise');
SELECT pg_temp.same(api.mcp_transaction_policy('tool', 'middle', '{"isolation": "read committed"}') -> 'isolation',
    '"repeatable read"', 'the floor is stronger');
SELECT pg_temp.same(api.mcp_transaction_policy('tool', 'middle',
    '{"isolation": "serializable", "readOnly": true}') -> 'begin',
    '"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"', 'the request is stronger');
SELECT pg_temp.ok(api.mcp_transaction_policy('tool', 'none') IS NULL, 'no policy of what is not there');
SELECT pg_temp.same(pg_temp.call('middle') #> '{error,data}',
    '{"code": "isolation_too_weak", "required": "repeatable read", "actual": "read committed"}',
    'a too weak isolation is refused');
SELECT pg_temp.tool('writes', 'BEGIN INSERT INTO tidegate_test_write VALUES (1);
    RETURN api.mcp_tool_result(''[]'', (request).request_id); END', '{"readOnly": true}');
SELECT pg_temp.same(pg_temp.call('writes') #> '{error,data,code}', '"write_in_read_only_handler"',
    'a write in a handler that only reads is refused');
SELECT pg_temp.ok(current_setting('transaction_read_only') = 'off', 'the transaction is as before');
SELECT pg_temp.tool('writes', 'BEGIN INSERT INTO tidegate_test_write VALUES (1);
    RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
SELECT pg_temp.ok(pg_temp.call('writes') ? 'result', 'another one may write after it');
SELECT pg_temp.ok((SELECT count(*) = 1 FROM public.tidegate_test_write), 'and has written');
