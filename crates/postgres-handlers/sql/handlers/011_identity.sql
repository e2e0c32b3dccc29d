-- Who asks. The context of a request is the only source: what an earlier call left behind on the connection counts for
-- nothing.

-- A person's or program's name in the context: text or a number, not blank. Anything else is nobody.
CREATE FUNCTION @schema@.context_member(p_context jsonb, p_member text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_context) = 'object' AND jsonb_typeof(p_context -> p_member) IN ('string', 'number')
    THEN substring(p_context ->> p_member FROM '[^[:space:]](?:.*[^[:space:]])?')
END;

-- Whether an identity is one that the database knows. Without a check of the owner's any name will do: then whoever
-- calls the dispatcher answers for the names that it passes on. The lines for the log are kept from a client that asks
-- for them.
CREATE FUNCTION @schema@.identity_is_known(p_context jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET client_min_messages = error AS $body$
DECLARE
    v_check text := (SELECT identity_check FROM @schema@.registry);
    v_known boolean;
BEGIN
    IF @schema@.context_member(p_context, 'user_id') IS NULL THEN
        RETURN false;
    END IF;
    IF v_check IS NULL THEN
        RETURN true;
    END IF;
    BEGIN
        IF to_regprocedure(v_check) IS NULL THEN
            RAISE LOG 'the identity check % is gone: nobody is known', v_check;
            RETURN false;
        END IF;
        -- regproc prints names quoted and in full.
        EXECUTE format('SELECT %s($1)', to_regprocedure(v_check)::oid::regproc) INTO v_known USING p_context;
    EXCEPTION
        WHEN serialization_failure OR deadlock_detected THEN
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = 'the transaction met another one; run it again';
        -- A check that fails, or that the caller may not execute, lets nobody in.
        WHEN query_canceled OR assert_failure OR OTHERS THEN
            RAISE LOG 'the identity check % failed: %: %', v_check, SQLSTATE, SQLERRM;
            v_known := false;
    END;
    RETURN coalesce(v_known, false);
END
$body$;

-- Says who asks from here to the end of the transaction, or until somebody else is named. Answers whether it is
-- somebody.
CREATE FUNCTION @schema@.enter_identity(p_context jsonb) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_known boolean := @schema@.identity_is_known(p_context);
BEGIN
    PERFORM
        set_config('auth.user_id',
            coalesce(CASE WHEN v_known THEN @schema@.context_member(p_context, 'user_id') END, ''), true),
        set_config('auth.tenant_id',
            coalesce(CASE WHEN v_known THEN @schema@.context_member(p_context, 'tenant_id') END, ''), true);
    RETURN v_known;
END
$body$;

-- What leave_identity needs to put back.
CREATE FUNCTION @schema@.current_identity() RETURNS text[]
LANGUAGE sql STABLE
RETURN ARRAY[
    coalesce(current_setting('auth.user_id', true), ''),
    coalesce(current_setting('auth.tenant_id', true), '')
];

CREATE FUNCTION @schema@.leave_identity(p_before text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM set_config('auth.user_id', p_before[1], true), set_config('auth.tenant_id', p_before[2], true);
END
$body$;

-- Lets a function of the owner's, which takes the context and says true or false, decide who is known; NULL ends that.
CREATE FUNCTION @schema@.set_mcp_identity_check(p_check regprocedure) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF p_check IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_proc
        WHERE oid = p_check AND prorettype = 'boolean'::regtype AND pronargs = 1 AND proargtypes[0] = 'jsonb'::regtype
            AND prokind = 'f' AND NOT proretset
    ) THEN
        RAISE EXCEPTION '% is no identity check: it must be a function of one jsonb that returns boolean', p_check
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE @schema@.registry SET identity_check = p_check::text, revision = revision + 1 WHERE is_only_row;
END
$body$;
