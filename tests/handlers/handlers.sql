-- What the acceptance list asks of, in a new database. Nothing of a CANARY may ever reach a caller.
SET client_min_messages = warning;
ALTER DATABASE :"DBNAME" SET deadlock_timeout = '100ms';

CREATE FUNCTION pg_temp.tool(p_name text, p_body text, p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', 'tool', 'name', p_name, 'requiresAuth', false) || p_more, p_body)
$$;

-- ---- Round trip ----
SELECT pg_temp.tool('echo', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('Echo: ' || ((request).arguments ->> 'message'))), (request).request_id);
END
$body$, '{"title": "Echo", "description": "Says it again.", "tags": ["a", "b"], "icons": [{"src": "https://example.com/i.png"}],
    "annotations": {"readOnlyHint": true}, "readOnly": true,
    "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}}');
SELECT pg_temp.tool('bare', $$BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('bare')), (request).request_id); END$$);
SELECT pg_temp.tool('typed', 'BEGIN RETURN api.mcp_structured_result((request).arguments, (request).request_id); END',
    '{"outputSchema": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"]}}');
SELECT pg_temp.tool('blocks', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('one'),
        '{"type": "image", "data": "aGk=", "mimeType": "image/png"}'::jsonb,
        '{"type": "resource_link", "uri": "app:///plain", "name": "plain"}'::jsonb,
        '{"type": "resource", "resource": {"uri": "app:///plain", "mimeType": "text/plain", "text": "hi"}}'::jsonb), (request).request_id);
END
$body$);
-- Behind FROM the server would make all of the series before the first row.
SELECT pg_temp.tool('rows', $$SELECT n, 'r' || n AS label, NULL AS nothing FROM (SELECT generate_series(1, ((request).arguments ->> 'count')::integer) AS n) AS numbers$$,
    '{"rows": true, "readOnly": true, "inputSchema": {"properties": {"count": {"type": "integer", "maximum": 100000000}}, "required": ["count"]}}');
CREATE FUNCTION public.add(a integer, b integer DEFAULT 10) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
COMMENT ON FUNCTION public.add IS 'Adds.';
SELECT api.register_function('public.add(integer, integer)', '{"requiresAuth": false}');

SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', 'resource', 'name', name, 'uriTemplate', uri, 'mimeType', 'text/plain', 'requiresAuth', false),
    format($body$BEGIN RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object(
        'uri', (request).uri, 'mimeType', 'text/plain', 'text', %L || (request).variables::text)), (request).request_id); END$body$, name || ' '))
FROM (VALUES ('plain', 'app:///plain'), ('one', 'app:///{a}'), ('other', 'app:///{aa}'), ('deep', 'app:///{a}/x/{b}')) AS list (name, uri);
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "help", "title": "Help", "requiresAuth": false,
    "arguments": [{"name": "task", "description": "What to do", "required": true}, {"name": "tone"}]}', $body$
BEGIN
    PERFORM nextval('prompts_got');
    RETURN api.mcp_prompt_result(jsonb_build_array(jsonb_build_object('role', 'user', 'content', api.mcp_text((request).arguments ->> 'task'))), (request).request_id);
END
$body$);

-- ---- Who asks ----
SELECT pg_temp.tool('who', $body$
BEGIN
    RETURN api.mcp_structured_result(jsonb_build_object('user', current_setting('auth.user_id', true), 'tenant', current_setting('auth.tenant_id', true),
        'context', (request).context, 'role', current_user), (request).request_id);
END
$body$);
SELECT pg_temp.tool('closed', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(current_setting('auth.user_id') || '@' || current_setting('auth.tenant_id'))), (request).request_id);
END
$body$, '{"requiresAuth": true}');
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "closed", "uriTemplate": "closed:///one"}', $$BEGIN
    RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object('uri', (request).uri, 'text', 'for somebody')), (request).request_id); END$$);
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "closed_each", "uriTemplate": "closed:///each/{id}"}', $$BEGIN
    RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object('uri', (request).uri, 'text', (request).variables ->> 'id')), (request).request_id); END$$);
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "closed"}', $$BEGIN
    RETURN api.mcp_prompt_result('[{"role": "user", "content": {"type": "text", "text": "for somebody"}}]', (request).request_id); END$$);
SELECT pg_temp.tool('who_in_rows', $$SELECT current_setting('auth.user_id', true) AS user, current_setting('auth.tenant_id', true) AS tenant$$, '{"rows": true, "readOnly": true}');
CREATE FUNCTION public.is_employee(p_context jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$SELECT p_context ->> 'user_id' = 'ann'$$;
SELECT pg_temp.tool('audit', $$BEGIN RETURN api.mcp_tool_result('[]', (request).request_id); END$$, '{"roles": ["mcp_auditor"]}');

-- ---- What fails. Each of them writes before it does. ----
CREATE TABLE public.written (handler text NOT NULL);
GRANT SELECT, INSERT ON public.written TO mcp_public, mcp_staff, mcp_auditor;
CREATE SEQUENCE public.prompts_got;
CREATE SEQUENCE public.checked_ran;
CREATE SEQUENCE public.conflicts_attempts;
CREATE SEQUENCE public.never_attempts;
CREATE SEQUENCE public.skew_arrivals;
CREATE SEQUENCE public.lock_arrivals;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO mcp_public, mcp_staff, mcp_auditor;

CREATE FUNCTION pg_temp.writes(p_name text, p_statement text, p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT pg_temp.tool(p_name, format('BEGIN INSERT INTO public.written VALUES (%L); %s END', p_name, p_statement), p_more)
$$;
SELECT pg_temp.writes('raises', $$RAISE EXCEPTION 'CANARY %', 42 USING DETAIL = 'CANARY detail', HINT = 'CANARY hint';$$);
SELECT pg_temp.writes('divides', 'PERFORM 1 / 0;');
SELECT pg_temp.writes('misses', 'PERFORM * FROM canary_table;');
SELECT pg_temp.writes('falls_off', 'NULL;');
SELECT pg_temp.writes('ends_transaction', 'COMMIT;');
SELECT pg_temp.writes('inserts_nothing', $$INSERT INTO public.written VALUES (NULL);$$);
SELECT pg_temp.writes('insists', $$ASSERT false, 'CANARY';$$);
SELECT pg_temp.writes('raises_cancel', $$RAISE EXCEPTION 'CANARY' USING ERRCODE = 'query_canceled';$$);
SELECT pg_temp.writes('sleeps', $$PERFORM pg_sleep(600); RETURN api.mcp_tool_result('[]', (request).request_id);$$);
SELECT pg_temp.writes('times_out', $$PERFORM pg_sleep(600);$$, '{"statementTimeout": "200ms"}');
SELECT pg_temp.writes('refuses', $$PERFORM api.mcp_refuse('choose a number below 5');$$);
CREATE TABLE public.deferred (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED);
GRANT SELECT, INSERT ON public.deferred TO mcp_public, mcp_staff, mcp_auditor;
SELECT pg_temp.writes('fails_at_commit', $$INSERT INTO public.deferred VALUES (1), (1);
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('all is well')), (request).request_id);$$);
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "fails", "requiresAuth": false}', $$BEGIN
    INSERT INTO public.written VALUES ('prompt'); RAISE EXCEPTION 'CANARY'; END$$);
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "fails", "uriTemplate": "fails:///one", "requiresAuth": false}', $$BEGIN
    INSERT INTO public.written VALUES ('resource'); RAISE EXCEPTION 'CANARY'; END$$);

-- Answers that are none
SELECT pg_temp.writes('broken_' || name, 'RETURN ' || answer || ';')
FROM (VALUES
    ('null', 'NULL'),
    ('null_envelope', 'ROW(NULL)::api.mcp_response'),
    ('no_jsonrpc', 'ROW(jsonb_build_object(''id'', (request).request_id, ''result'', ''{"content": []}''::jsonb))::api.mcp_response'),
    ('array', 'ROW(''[]'')::api.mcp_response'),
    ('both', 'ROW(jsonb_build_object(''jsonrpc'', ''2.0'', ''id'', (request).request_id, ''result'', ''{"content": []}''::jsonb, ''error'', ''{"code": 1, "message": "CANARY"}''::jsonb))::api.mcp_response'),
    ('neither', 'ROW(jsonb_build_object(''jsonrpc'', ''2.0'', ''id'', (request).request_id))::api.mcp_response'),
    ('no_content', 'api.mcp_success(''{"CANARY": 1}'', (request).request_id)'),
    ('wrong_content', 'api.mcp_tool_result(''[{"type": "text"}]'', (request).request_id)'),
    ('text_null', 'api.mcp_tool_result(''[{"type": "text", "text": null}]'', (request).request_id)'),
    ('wrong_id', 'api.mcp_tool_result(''[{"type": "text", "text": "CANARY"}]'', ''some-id'')'),
    ('null_id', 'api.mcp_tool_result(''[{"type": "text", "text": "CANARY"}]'', NULL)'),
    ('reserved_code', 'api.mcp_error(-32050, ''CANARY'', (request).request_id)'),
    ('text_code', 'ROW(jsonb_build_object(''jsonrpc'', ''2.0'', ''id'', (request).request_id, ''error'', ''{"code": "x", "message": "CANARY"}''::jsonb))::api.mcp_response')
) AS list (name, answer);
SELECT pg_temp.writes('broken_output', 'RETURN api.mcp_structured_result(''{"a": "CANARY"}'', (request).request_id);',
    '{"outputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}');
SELECT pg_temp.writes('broken_no_output', 'RETURN api.mcp_tool_result(''[]'', (request).request_id);', '{"outputSchema": {"type": "object"}}');

-- Answers that say that it failed
SELECT pg_temp.writes('says', $$RETURN api.mcp_tool_error('no', (request).request_id);$$);
SELECT pg_temp.writes('says_more', $$RETURN api.mcp_success('{"content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}], "isError": true}', (request).request_id);$$);
SELECT pg_temp.writes('says_code', $$RETURN api.mcp_error(-32602, 'no such order', (request).request_id, '{"order": 5}');$$);
SELECT pg_temp.writes('keeps', $$RETURN api.mcp_tool_error('no', (request).request_id);$$, '{"commitOnError": true}');
SELECT pg_temp.writes('well', $$RETURN api.mcp_tool_result('[]', (request).request_id);$$);

-- The same of prompts and resources
SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', type, 'name', name, 'requiresAuth', false) || more,
    format('BEGIN INSERT INTO public.written VALUES (%L); RETURN %s; END', word || ' ' || type, answer))
FROM (VALUES
    ('broken', 'broken', 'api.mcp_success(''{"CANARY": 1}'', (request).request_id)'),
    ('broken_null', 'broken', 'NULL'),
    ('says', 'saying', 'api.mcp_error(4711, ''no such order'', (request).request_id)')
) AS list (name, word, answer),
(VALUES ('prompt', '{}'::jsonb), ('resource', NULL)) AS kinds (type, given),
LATERAL (SELECT coalesce(given, jsonb_build_object('uriTemplate', CASE name WHEN 'broken_null' THEN 'broken:///null' ELSE name || ':///one' END)) AS more) AS filled;

-- ---- Transactions that meet others ----
CREATE TABLE public.balance (name text PRIMARY KEY, amount integer NOT NULL);
INSERT INTO public.balance VALUES ('a', 0), ('b', 0);
GRANT SELECT, UPDATE ON public.balance TO mcp_staff;
-- Goes on when another call of the same sequence has come so far too; a call that runs again waits for nobody.
CREATE FUNCTION public.meet(p_arrivals regclass) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_gives_up_at timestamptz := clock_timestamp() + interval '30 s';
    v_arrived bigint := nextval(p_arrivals);
BEGIN
    WHILE v_arrived < 2 AND clock_timestamp() < v_gives_up_at LOOP
        PERFORM pg_sleep(0.005);
        EXECUTE format('SELECT last_value FROM %s', p_arrivals) INTO v_arrived;
    END LOOP;
END
$body$;
-- Each reads the other row and writes its own one: two at once would both read 0.
SELECT pg_temp.tool('skews', $body$
DECLARE
    v_other integer;
BEGIN
    SELECT amount INTO v_other FROM balance WHERE name <> (request).arguments ->> 'own';
    PERFORM meet('skew_arrivals');
    UPDATE balance SET amount = v_other + 1 WHERE name = (request).arguments ->> 'own';
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('done')), (request).request_id);
END
$body$, '{"minTransactionIsolation": "serializable", "retry": 10}');
-- Each locks one row, waits for the other call to have done so, and wants the other row.
SELECT pg_temp.tool('locks', $body$
BEGIN
    UPDATE balance SET amount = amount + 1 WHERE name = (request).arguments ->> 'own';
    PERFORM meet('lock_arrivals');
    UPDATE balance SET amount = amount + 1 WHERE name <> (request).arguments ->> 'own';
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('done')), (request).request_id);
END
$body$);
SELECT pg_temp.tool('conflicts_twice', $body$
BEGIN
    IF nextval('conflicts_attempts') < 3 THEN
        RAISE EXCEPTION 'CANARY' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('at last')), (request).request_id);
END
$body$);
SELECT pg_temp.tool(name, format($body$
BEGIN
    PERFORM nextval('never_attempts');
    RAISE EXCEPTION 'CANARY' USING ERRCODE = %L;
END
$body$, code), '{"retry": 2}')
FROM (VALUES ('conflicts_always', 'serialization_failure'), ('deadlocks_always', 'deadlock_detected')) AS list (name, code);

-- ---- Policy ----
SELECT pg_temp.tool('in_' || name, $body$
BEGIN
    RETURN api.mcp_structured_result(jsonb_build_object('isolation', current_setting('transaction_isolation'),
        'readOnly', current_setting('transaction_read_only'), 'deferrable', current_setting('transaction_deferrable')), (request).request_id);
END
$body$, more::jsonb)
FROM (VALUES ('any', '{}'), ('reads', '{"readOnly": true}'), ('middle', '{"minTransactionIsolation": "repeatable read"}'), ('strict', '{"minTransactionIsolation": "serializable"}'),
    ('strict_reads', '{"minTransactionIsolation": "serializable", "readOnly": true}')) AS list (name, more);
SELECT pg_temp.writes('writes_though_it_reads', $$RETURN api.mcp_tool_result('[]', (request).request_id);$$, '{"readOnly": true}');

-- ---- Arguments ----
SELECT pg_temp.tool('checked', $body$
BEGIN
    PERFORM nextval('checked_ran');
    RETURN api.mcp_structured_result((request).arguments, (request).request_id);
END
$body$, '{"inputSchema": {"type": "object", "additionalProperties": false, "required": ["name", "count"], "properties": {
    "name": {"type": "string", "minLength": 2}, "count": {"type": "integer", "minimum": 1}, "deep": {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "boolean"}}}}}}}');
