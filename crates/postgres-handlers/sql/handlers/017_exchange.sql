-- The exchange log: who called what, how long it took, what became of it. It is off unless switched on.
--
-- It is written by whoever calls, after the handler has ended and what a failing one wrote was undone, so failures are
-- in it. Only a transaction that is rolled back as a whole takes its lines along.

CREATE TABLE @schema@.exchange (
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    role_name name NOT NULL DEFAULT current_user,
    type text NOT NULL,
    name text NOT NULL,
    user_id text,
    tenant_id text,
    request_id jsonb,
    duration_ms double precision NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('done', 'failed', 'refused')),
    code text,
    reference text,
    detail text,
    arguments jsonb
);
COMMENT ON TABLE @schema@.exchange IS
    'The exchange log. Switch it with set_mcp_exchange_log, shorten it with purge_mcp_exchanges.';
COMMENT ON COLUMN @schema@.exchange.reference IS 'What the caller was told instead of the detail.';
CREATE INDEX exchange_at ON @schema@.exchange USING brin (at);
-- It has no key. Where all tables are published, it could not be shortened otherwise.
ALTER TABLE @schema@.exchange REPLICA IDENTITY FULL;

CREATE FUNCTION @schema@.set_mcp_exchange_log(p_is_on boolean) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE @schema@.registry SET logs_exchanges = p_is_on, revision = revision + 1 WHERE is_only_row;
END;

-- Forgets what is older; how many lines that were.
CREATE FUNCTION @schema@.purge_mcp_exchanges(p_kept interval) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_count bigint;
BEGIN
    DELETE FROM @schema@.exchange WHERE at < now() - p_kept;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$body$;

-- A value without what lies at the end of a path; of an array, each item is looked into, unless the step is its place.
CREATE FUNCTION @schema@.redacted_at(p_value jsonb, p_steps text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_step text := p_steps[1];
BEGIN
    IF v_step IS NULL THEN
        RETURN '"(redacted)"';
    ELSIF jsonb_typeof(p_value) = 'array' AND v_step !~ '^[0-9]{1,9}$' THEN
        RETURN coalesce((
            SELECT jsonb_agg(
                @schema@.redacted_at(item, CASE v_step WHEN '*' THEN p_steps[2:] ELSE p_steps END) ORDER BY place)
            FROM jsonb_array_elements(p_value) WITH ORDINALITY AS items (item, place)
        ), '[]');
    ELSIF p_value #> ARRAY[v_step] IS NULL THEN
        RETURN p_value;
    END IF;
    RETURN jsonb_set(p_value, ARRAY[v_step], @schema@.redacted_at(p_value #> ARRAY[v_step], p_steps[2:]));
END
$body$;

-- The arguments without what the handler's metadata keeps out of the log: paths as in "card.number", in which arrays
-- need no step of their own, or as in "$.card.number". Arguments that are no object have no paths, and so are not shown
-- at all.
CREATE FUNCTION @schema@.redacted(p_arguments jsonb, p_paths jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_arguments jsonb := p_arguments;
    v_steps text[];
BEGIN
    IF p_arguments IS NULL OR coalesce(p_paths, '[]') = '[]' THEN
        RETURN p_arguments;
    ELSIF jsonb_typeof(p_arguments) <> 'object' THEN
        RETURN '"(redacted)"';
    END IF;
    FOR v_steps IN
        SELECT string_to_array(regexp_replace(path, '^[$][.]', ''), '.') FROM jsonb_array_elements_text(p_paths) AS path
    LOOP
        v_arguments := @schema@.redacted_at(v_arguments, v_steps);
    END LOOP;
    RETURN v_arguments;
END
$body$;

-- What a line says of the arguments. The variables of a template lie in the URI, which is shown only where none is kept
-- out.
CREATE FUNCTION @schema@.logged_arguments(p_handler @schema@.handler, p_request @schema@.mcp_request)
RETURNS jsonb
LANGUAGE sql STABLE
RETURN CASE
    WHEN (p_handler).type <> 'resource' THEN @schema@.redacted((p_request).arguments, (p_handler).metadata -> 'redact')
    WHEN (p_handler).metadata ? 'redact' THEN jsonb_build_object('uriTemplate', (p_handler).uri_template,
        'variables', @schema@.redacted((p_request).variables, (p_handler).metadata -> 'redact'))
    ELSE jsonb_build_object('uri', (p_request).uri)
END;

-- Writes one line, if the log is on and the transaction may write. That it cannot be written never hurts the call. Who
-- asked stands in the request: what a handler made of the settings meanwhile counts for nothing.
CREATE FUNCTION @schema@.log_exchange(p_handler @schema@.handler, p_request @schema@.mcp_request,
    p_envelope jsonb, p_failure jsonb, p_began_at timestamptz, p_outcome text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = error AS $body$
BEGIN
    IF NOT (SELECT logs_exchanges FROM @schema@.registry) OR current_setting('transaction_read_only') = 'on' THEN
        RETURN;
    END IF;
    BEGIN
        INSERT INTO @schema@.exchange (type, name, user_id, tenant_id, request_id, duration_ms, outcome, code,
            reference, detail, arguments)
        VALUES (
            p_handler.type, p_handler.name, @schema@.context_member(p_request.context, 'user_id'),
            @schema@.context_member(p_request.context, 'tenant_id'), p_request.request_id,
            extract(epoch FROM clock_timestamp() - p_began_at) * 1000, p_outcome,
            coalesce(p_failure ->> 'code', p_envelope #>> '{error,code}'), p_failure ->> 'reference',
            p_failure ->> 'detail', @schema@.logged_arguments(p_handler, p_request)
        );
    EXCEPTION WHEN OTHERS THEN
        RAISE LOG 'the exchange log was not written: %', SQLERRM;
    END;
END
$body$;
