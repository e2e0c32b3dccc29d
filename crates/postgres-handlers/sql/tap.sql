-- What tests say their findings with, in TAP, and how they ask handlers. All of it lives in the temporary schema and goes
-- with the transaction. `tidegate pg test` runs it before each test file.
--
-- Findings, a row each:
--     pg_temp.ok(boolean, name)                     it is so
--     pg_temp.same(jsonb, jsonb, name)              they are the same
--     pg_temp.matches(text, pattern, name)          the text matches the regular expression
--     pg_temp.refused(sql, pattern, name)           the statement fails, and its code and message match
-- Handlers, whose answer is the JSON-RPC response:
--     pg_temp.call(name, arguments, context)        a tool is called
--     pg_temp.read_resource(uri, context)           a resource is read
--     pg_temp.get_prompt(name, arguments, context)  a prompt is got
--     pg_temp.ask(method, params, context)          any request; ask_now is the one of a client of the newest revision
-- The context says who asks: {"user_id": "ann", "tenant_id": "north"}.
-- Beside them:
--     pg_temp.as_role(role, sql)                    the value of a statement that this role runs, or its error
--     pg_temp.outcome(sql)                          the same of a statement of one's own
--     pg_temp.tool(name, body, metadata)            registers a tool that anybody may call

CREATE TEMPORARY TABLE tap (number integer GENERATED ALWAYS AS IDENTITY, is_so boolean NOT NULL, name text NOT NULL);
-- So that a test may go on as another role.
GRANT SELECT, INSERT ON pg_temp.tap TO PUBLIC;

-- That it is so; NULL is not.
CREATE FUNCTION pg_temp.ok(p_is_so boolean, p_name text) RETURNS text LANGUAGE sql AS $body$
    INSERT INTO pg_temp.tap (is_so, name) VALUES (coalesce(p_is_so, false), coalesce(p_name, ''))
    RETURNING format('%s %s - %s', CASE WHEN is_so THEN 'ok' ELSE 'not ok' END, number, name)
$body$;

-- That both are the same; SQL's NULL is the same as itself alone.
CREATE FUNCTION pg_temp.same(p_got jsonb, p_wanted jsonb, p_name text) RETURNS text LANGUAGE sql AS $body$
    SELECT pg_temp.ok(p_got IS NOT DISTINCT FROM p_wanted, p_name)
        || CASE WHEN p_got IS NOT DISTINCT FROM p_wanted THEN ''
                ELSE format(E'\n#   got    %s\n#   wanted %s', coalesce(p_got::text, 'NULL'), coalesce(p_wanted::text, 'NULL')) END
$body$;

-- That the text matches a regular expression.
CREATE FUNCTION pg_temp.matches(p_got text, p_pattern text, p_name text) RETURNS text LANGUAGE sql AS $body$
    SELECT pg_temp.ok(coalesce(p_got ~ p_pattern, false), p_name)
        || CASE WHEN p_got ~ p_pattern THEN ''
                ELSE format(E'\n#   got    %s\n#   wanted %s', replace(coalesce(p_got, 'NULL'), E'\n', E'\n#          '), p_pattern) END
$body$;

-- What becomes of a statement: its value, or its error.
CREATE FUNCTION pg_temp.outcome(p_sql text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
    v_value text;
BEGIN
    EXECUTE p_sql INTO v_value;
    RETURN v_value;
EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
    RETURN format('ERROR %s: %s', SQLSTATE, SQLERRM);
END
$body$;

-- That a statement fails, with a code and a message that match a regular expression.
CREATE FUNCTION pg_temp.refused(p_sql text, p_pattern text, p_name text) RETURNS text LANGUAGE sql AS $body$
    SELECT pg_temp.matches(pg_temp.outcome(p_sql), '^ERROR .*' || p_pattern, p_name)
$body$;

-- What becomes of a statement that a role runs: its value, or its error.
CREATE FUNCTION pg_temp.as_role(p_role text, p_sql text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
    v_value text;
BEGIN
    PERFORM set_config('role', p_role, true);
    EXECUTE p_sql INTO v_value;
    PERFORM set_config('role', 'none', true);
    RETURN v_value;
EXCEPTION WHEN OTHERS THEN
    RETURN format('ERROR %s: %s', SQLSTATE, SQLERRM);
END
$body$;

-- A request, and its answer.
CREATE FUNCTION pg_temp.ask(p_method text, p_params jsonb DEFAULT '{}', p_context jsonb DEFAULT NULL, p_id jsonb DEFAULT '1') RETURNS jsonb
LANGUAGE sql AS $body$
    SELECT (@schema@.mcp_handle_request(
        jsonb_build_object('jsonrpc', '2.0', 'id', p_id, 'method', p_method, 'params', p_params), p_context)).envelope
$body$;

-- The same of a client that speaks the newest revision.
CREATE FUNCTION pg_temp.ask_now(p_method text, p_params jsonb DEFAULT '{}', p_context jsonb DEFAULT NULL, p_id jsonb DEFAULT '1') RETURNS jsonb
LANGUAGE sql AS $body$
    SELECT pg_temp.ask(p_method, p_params || jsonb_build_object('_meta', coalesce(p_params -> '_meta', '{}') || '{
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}'), p_context, p_id)
$body$;

-- A tool is called.
CREATE FUNCTION pg_temp.call(p_name text, p_arguments jsonb DEFAULT '{}', p_context jsonb DEFAULT NULL, p_id jsonb DEFAULT '1') RETURNS jsonb
LANGUAGE sql AS $body$
    SELECT pg_temp.ask('tools/call', jsonb_build_object('name', p_name, 'arguments', p_arguments), p_context, p_id)
$body$;

-- A resource is read.
CREATE FUNCTION pg_temp.read_resource(p_uri text, p_context jsonb DEFAULT NULL, p_id jsonb DEFAULT '1') RETURNS jsonb
LANGUAGE sql AS $body$
    SELECT pg_temp.ask('resources/read', jsonb_build_object('uri', p_uri), p_context, p_id)
$body$;

-- A prompt is got.
CREATE FUNCTION pg_temp.get_prompt(p_name text, p_arguments jsonb DEFAULT '{}', p_context jsonb DEFAULT NULL, p_id jsonb DEFAULT '1') RETURNS jsonb
LANGUAGE sql AS $body$
    SELECT pg_temp.ask('prompts/get', jsonb_build_object('name', p_name, 'arguments', p_arguments), p_context, p_id)
$body$;

-- Registers a tool that is open to everybody; its id is its name.
CREATE FUNCTION pg_temp.tool(p_name text, p_body text, p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $body$
    SELECT @schema@.create_or_replace_mcp_handler(
        jsonb_build_object('type', 'tool', 'name', p_name, 'requiresAuth', false) || p_more, p_body)
$body$;

-- How many results there are, for whoever runs a file with psql.
CREATE FUNCTION pg_temp.plan() RETURNS text LANGUAGE sql AS $body$
    SELECT format(E'1..%s\n# %s of %s failed', count(*), count(*) FILTER (WHERE NOT is_so), count(*)) FROM pg_temp.tap
$body$;
