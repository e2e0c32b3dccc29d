-- Runs a handler, and turns whatever becomes of it into an answer.

-- An answer for a failure of the handler's. The reader gets a reference, the logs have the detail beside it; a client
-- that asks for the lines of the log does not get them. Under pgmi the reader gets the message itself.
CREATE FUNCTION @schema@.failure_envelope(p_handler @schema@.handler, p_request_id jsonb, p_failure jsonb)
RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = error AS $body$
DECLARE
    v_code text := p_failure ->> 'code';
    v_reference text := p_failure ->> 'reference';
BEGIN
    RAISE LOG 'handler failed: type=% name=% code=% reference=% detail=%',
        p_handler.type, p_handler.name, v_code, v_reference, p_failure ->> 'detail';
    IF @schema@.is_pgmi() THEN
        RETURN (@schema@.mcp_error(-32603, p_failure ->> 'message', p_request_id)).envelope;
    END IF;
    IF p_handler.type = 'tool' AND v_code NOT IN ('broken_answer', 'write_in_read_only_handler') THEN
        RETURN (@schema@.mcp_tool_error(CASE v_code
            WHEN 'cancelled' THEN 'The tool was stopped: it took too long, or somebody cancelled it.'
            ELSE format('The tool failed. The server''s log has the detail under %s.', v_reference) END,
            p_request_id)).envelope;
    END IF;
    RETURN (@schema@.mcp_error(-32603,
        format('Internal error. The server''s log has the detail under %s.', v_reference),
        p_request_id, jsonb_build_object('code', v_code, 'reference', v_reference))).envelope;
END
$body$;

-- The rows of a handler that returns rows, as many as fit; a caller of the function itself gets them one by one.
CREATE FUNCTION @schema@.rows_envelope(p_handler @schema@.handler, p_request @schema@.mcp_request)
RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_rows_max CONSTANT integer := 1000;
    v_rows jsonb;
    v_answer jsonb;
BEGIN
    -- In the list of columns the function gives row after row and stops with the limit; after FROM it would run to its
    -- end.
    EXECUTE format('SELECT coalesce(jsonb_agg(one), ''[]'') FROM (SELECT %s($1) AS one LIMIT %s) AS rows',
        @schema@.function_of(p_handler), c_rows_max + 1) INTO v_rows USING p_request;
    v_answer := jsonb_build_object('rows', v_rows - c_rows_max, 'truncated', jsonb_array_length(v_rows) > c_rows_max);
    RETURN (@schema@.mcp_structured_result(v_answer, p_request.request_id)).envelope;
END
$body$;

-- The name to call, without the types of its arguments.
CREATE FUNCTION @schema@.function_of(p_handler @schema@.handler) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN left((p_handler).function_signature, strpos((p_handler).function_signature, '(') - 1);

-- Runs in the rights of whoever calls. What a failing handler wrote is undone, whether it raises or says that it
-- failed, unless it was registered with commitOnError. Serialization failures and deadlocks are handed on: only who
-- began the transaction can run it again. A failure is told apart from what the caller reads of it. A handler that
-- becomes another role is that role until it ends.
CREATE FUNCTION @schema@.invoke_handler(p_handler @schema@.handler, p_request @schema@.mcp_request,
    OUT envelope jsonb, OUT failure jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_policy jsonb := @schema@.transaction_problem(p_handler.isolation_min);
    v_role text := current_setting('role');
    v_problem text;
    v_failed boolean;
BEGIN
    IF v_policy IS NOT NULL THEN
        envelope := (@schema@.mcp_error(-32603,
            format('The handler needs a transaction that is at least %s.', p_handler.isolation_min),
            p_request.request_id, v_policy)).envelope;
        RETURN;
    END IF;
    BEGIN
        IF p_handler.read_only AND current_setting('transaction_read_only') = 'off' THEN
            -- Until the end of this block, which is a subtransaction.
            PERFORM set_config('transaction_read_only', 'on', true);
        END IF;
        IF p_handler.returns_rows THEN
            envelope := @schema@.rows_envelope(p_handler, p_request);
        ELSE
            EXECUTE format('SELECT answer.envelope FROM %s($1) AS answer', @schema@.function_of(p_handler))
                INTO envelope USING p_request;
        END IF;
        IF p_handler.type = 'resource' THEN
            envelope := @schema@.without_null_texts(envelope);
        END IF;
        v_problem := @schema@.envelope_problem(envelope, p_handler.type, p_request.request_id, p_handler.output_schema);
        v_failed := envelope ? 'error' OR coalesce(envelope #> '{result,isError}' = 'true', false);
        IF v_problem IS NOT NULL OR (v_failed AND NOT p_handler.commits_on_error) THEN
            RAISE EXCEPTION USING ERRCODE = 'MCP00', MESSAGE = coalesce(v_problem, 'the handler says that it failed');
        END IF;
    EXCEPTION
        WHEN serialization_failure OR deadlock_detected THEN
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = 'the transaction met another one; run it again';
        WHEN SQLSTATE 'MCP00' THEN
            IF v_problem IS NOT NULL OR envelope IS NULL THEN
                failure := jsonb_build_object('code', 'broken_answer', 'message', SQLERRM, 'detail', SQLERRM);
            END IF;
        WHEN SQLSTATE 'MCP01' THEN
            envelope := (CASE p_handler.type WHEN 'tool' THEN @schema@.mcp_tool_error(SQLERRM, p_request.request_id)
                ELSE @schema@.mcp_error(-32603, SQLERRM, p_request.request_id) END).envelope;
        WHEN query_canceled THEN
            failure := jsonb_build_object('code', 'cancelled', 'message', SQLERRM, 'detail', SQLERRM);
        WHEN read_only_sql_transaction THEN
            failure := jsonb_build_object('message', SQLERRM, 'detail', SQLERRM,
                'code', CASE WHEN p_handler.read_only THEN 'write_in_read_only_handler' ELSE 'failed' END);
        -- A failing ASSERT is not among "others".
        WHEN assert_failure OR OTHERS THEN
            failure := jsonb_build_object('code', 'failed', 'message', SQLERRM, 'detail', SQLSTATE || ': ' || SQLERRM);
    END;
    IF current_setting('role') <> v_role THEN
        PERFORM set_config('role', v_role, true);
    END IF;
END
$body$;
