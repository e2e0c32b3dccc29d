-- The exchange log.

SELECT pg_temp.tool('fine', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"redact": ["secret", "card.number"]}');
SELECT pg_temp.tool('fails', 'BEGIN RAISE EXCEPTION ''the cellar is flooded''; END');
SELECT pg_temp.tool('closed', 'BEGIN RETURN NULL; END', '{"requiresAuth": true}');
SELECT pg_temp.call('fine');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM api.exchange), 'the log is off unless switched on');
SELECT api.set_mcp_exchange_log(true);
CREATE TEMPORARY TABLE answer AS SELECT pg_temp.call('fails', '{}', '{"user_id": "u", "tenant_id": "t"}',
    '"i"') AS envelope;
SELECT pg_temp.ok((SELECT (outcome, code, user_id, tenant_id, request_id, role_name) = ('failed', 'failed', 'u', 't',
    '"i"', current_user) FROM api.exchange WHERE name = 'fails'), 'a failing handler is logged, and who called it');
SELECT pg_temp.matches((SELECT detail FROM api.exchange WHERE name = 'fails'), 'P0001: the cellar is flooded',
    'with the detail');
SELECT pg_temp.ok((SELECT strpos(envelope::text, reference) > 0 AND strpos(envelope::text, 'cellar') = 0 FROM answer,
    api.exchange WHERE name = 'fails'), 'of which the caller reads the reference alone');
SELECT pg_temp.call('fine', '{"a": 1, "secret": "x", "card": {"number": 5, "month": 6}}');
SELECT pg_temp.same((SELECT arguments FROM api.exchange WHERE name = 'fine'),
    '{"a": 1, "secret": "(redacted)", "card": {"number": "(redacted)", "month": 6}}',
    'arguments, without what is kept out');
SELECT pg_temp.ok((SELECT outcome = 'done' AND duration_ms > 0 AND user_id IS NULL FROM api.exchange
    WHERE name = 'fine'), 'what went well, and how long it took');
SELECT pg_temp.call('closed');
SELECT pg_temp.ok((SELECT outcome = 'refused' AND code = '-32001' FROM api.exchange WHERE name = 'closed'),
    'what was refused');
CREATE ROLE tidegate_test_caller;
SELECT api.grant_mcp_access('tidegate_test_caller');
SELECT pg_temp.as_role('tidegate_test_caller', $$SELECT api.mcp_call_tool('fine', '{"n": 1}', NULL, 'i')$$);
SELECT pg_temp.ok(EXISTS (SELECT FROM api.exchange WHERE role_name = 'tidegate_test_caller'
    AND arguments = '{"n": 1}'), 'a role that may dispatch is logged');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_caller', 'SELECT count(*) FROM api.exchange'), '^ERROR 42501',
    'and cannot read the log');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_caller',
    $$INSERT INTO api.exchange (role_name, type, name, duration_ms, outcome) VALUES ('postgres', 'tool', 'x', 0,
    'done') RETURNING 1$$), '^ERROR 42501', 'nor write another''s name');
UPDATE api.exchange SET at = now() - interval '40 days' WHERE name = 'fails';
SELECT pg_temp.ok(api.purge_mcp_exchanges('30 days') = 1, 'what is old is purged');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM api.exchange WHERE name = 'fails'), 'and gone');
SELECT pg_temp.refused($$SELECT pg_temp.tool('x', 'BEGIN END', '{"redact": "secret"}')$$,
    'redact: must be an array of strings', 'redact is a list');

-- What is kept out, wherever it lies
SELECT pg_temp.same(api.redacted(arguments, paths), wanted, format('%s without %s', arguments, paths))
FROM (VALUES
    ('{"cards": [{"n": 1, "m": 2}, {"n": 3}]}'::jsonb, '["cards.n"]'::jsonb,
        '{"cards": [{"n": "(redacted)", "m": 2}, {"n": "(redacted)"}]}'::jsonb),
    ('{"cards": [[{"n": 1}], []]}', '["cards.*.n"]', '{"cards": [[{"n": "(redacted)"}], []]}'),
    ('{"cards": [1, 2]}', '["cards.0"]', '{"cards": ["(redacted)", 2]}'),
    ('{"a": {"b": null}, "c": 1}', '["$.a.b", "c.d", "e"]', '{"a": {"b": "(redacted)"}, "c": 1}'),
    ('{"a": 1}', '[]', '{"a": 1}'),
    ('"4111 1111"', '["a"]', '"(redacted)"')
) AS list (arguments, paths, wanted);
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "letter", "uriTemplate": "app:///letter/{key}",
    "redact": ["key"], "requiresAuth": false}',
    $$BEGIN RETURN api.mcp_resource_result('[]', (request).request_id); END$$);
SELECT pg_temp.ask('resources/read', '{"uri": "app:///letter/abc"}');
SELECT pg_temp.same((SELECT arguments FROM api.exchange WHERE name = 'letter'),
    '{"uriTemplate": "app:///letter/{key}", "variables": {"key": "(redacted)"}}', 'of a URI too');

-- Who asked stands fast, whatever the handler does
SELECT pg_temp.tool('forges', 'BEGIN PERFORM set_config(''auth.user_id'', ''admin'', true);
    RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
SELECT pg_temp.call('forges', '{}', '{"user_id": "bob"}');
SELECT pg_temp.ok((SELECT user_id = 'bob' FROM api.exchange WHERE name = 'forges'),
    'a handler cannot sign with another name');
CREATE TEMPORARY TABLE before AS SELECT revision FROM api.registry;
SELECT api.set_mcp_exchange_log(false);
SELECT pg_temp.ok((SELECT registry.revision > before.revision FROM api.registry, before),
    'the switch grows the revision, so that whoever listens looks');
SELECT pg_temp.ok((SELECT relreplident = 'f' FROM pg_class WHERE oid = 'api.exchange'::regclass),
    'the log can be shortened where all tables are published');
