-- isolation: serializable
-- The same as policy.sql where the transaction is as strong as it can be.

SELECT pg_temp.tool('middle', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"minTransactionIsolation": "repeatable read"}');
SELECT pg_temp.tool('strict', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"minTransactionIsolation": "serializable", "readOnly": true}');
SELECT pg_temp.ok(pg_temp.call('middle') ? 'result', 'a stronger isolation will do');
SELECT pg_temp.ok(pg_temp.call('strict') ? 'result', 'so will the same');
