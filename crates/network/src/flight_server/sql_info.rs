//! What the server is and can, for `GetSqlInfo`.
