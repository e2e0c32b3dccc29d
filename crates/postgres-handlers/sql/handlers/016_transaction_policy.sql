-- In which transaction a handler runs. A function cannot begin one: whoever begins it asks here; the dispatcher only
-- refuses what is too weak.

CREATE FUNCTION @schema@.isolation_rank(p_isolation text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE lower(replace(p_isolation, '_', ' '))
    WHEN 'read uncommitted' THEN 1
    WHEN 'read committed' THEN 1
    WHEN 'repeatable read' THEN 2
    WHEN 'serializable' THEN 3
END;

-- The stronger of what the handler demands and what the caller asks for (isolation, readOnly), or NULL when there is no
-- such handler. A serializable transaction that only reads waits for a moment without conflicts and then meets none.
CREATE FUNCTION @schema@.mcp_transaction_policy(p_type text, p_name text, p_requested jsonb DEFAULT '{}')
RETURNS jsonb
LANGUAGE sql STABLE
RETURN (
    SELECT jsonb_build_object(
        'isolation', isolation,
        'readOnly', is_read_only,
        'deferrable', is_deferrable,
        'begin', format('BEGIN ISOLATION LEVEL %s %s%s', upper(isolation),
            CASE WHEN is_read_only THEN 'READ ONLY' ELSE 'READ WRITE' END,
            CASE WHEN is_deferrable THEN ' DEFERRABLE' ELSE '' END),
        'retries', CASE metadata -> 'retry'
            WHEN 'false' THEN 0 WHEN 'true' THEN 3 ELSE coalesce((metadata ->> 'retry')::integer, 3) END,
        'commitOnError', commits_on_error,
        'statementTimeoutMs', @schema@.duration_ms(metadata -> 'statementTimeout')
    )
    FROM @schema@.handler,
        LATERAL (SELECT greatest(coalesce(@schema@.isolation_rank(isolation_min), 1),
            coalesce(@schema@.isolation_rank(p_requested ->> 'isolation'), 1)) AS rank) AS floor,
        LATERAL (SELECT (ARRAY['read committed', 'repeatable read', 'serializable'])[rank] AS isolation,
            read_only OR coalesce(p_requested -> 'readOnly' = 'true', false) AS is_read_only) AS stronger,
        LATERAL (SELECT isolation = 'serializable' AND is_read_only AS is_deferrable) AS waiting
    WHERE handler.type = p_type AND handler.name = p_name
);

-- Why the transaction that is open will not do for a handler; NULL when it will.
CREATE FUNCTION @schema@.transaction_problem(p_isolation_min text) RETURNS jsonb
LANGUAGE sql STABLE
RETURN CASE
    WHEN @schema@.isolation_rank(current_setting('transaction_isolation')) < @schema@.isolation_rank(p_isolation_min)
    THEN jsonb_build_object('code', 'isolation_too_weak', 'required', p_isolation_min,
        'actual', current_setting('transaction_isolation')) END;
