//! The SQL names of types.

use tokio_postgres::types::{Kind, Type};

/// The name of `kind` with its modifier (-1 where it has none), as `format_type` of PostgreSQL writes it; types that a
/// user made have their bare name.
pub fn type_name(kind: &Type, modifier: i32) -> String {
    match kind.kind() {
        // The vectors of the catalog are arrays too, and have names of their own.
        Kind::Array(item) if kind.name().starts_with('_') => format!("{}[]", type_name(item, modifier)),
        _ => scalar_name(kind, modifier),
    }
}

fn scalar_name(kind: &Type, modifier: i32) -> String {
    let of_length = |name: &str, length: i32| format!("{name}({length})");
    let has_modifier = modifier >= 0;
    match *kind {
        Type::BOOL => "boolean".to_owned(),
        Type::INT2 => "smallint".to_owned(),
        Type::INT4 => "integer".to_owned(),
        Type::INT8 => "bigint".to_owned(),
        Type::FLOAT4 => "real".to_owned(),
        Type::FLOAT8 => "double precision".to_owned(),
        Type::CHAR => "\"char\"".to_owned(),
        Type::NUMERIC => numeric_modifier(modifier)
            .map_or_else(|| "numeric".to_owned(), |(precision, scale)| format!("numeric({precision},{scale})")),
        Type::VARCHAR if has_modifier => of_length("character varying", modifier - HEADER_BYTES),
        Type::VARCHAR => "character varying".to_owned(),
        Type::BPCHAR if has_modifier => of_length("character", modifier - HEADER_BYTES),
        Type::BIT if has_modifier => of_length("bit", modifier),
        Type::VARBIT if has_modifier => of_length("bit varying", modifier),
        Type::VARBIT => "bit varying".to_owned(),
        Type::TIME => with_precision("time", modifier, "without time zone"),
        Type::TIMETZ => with_precision("time", modifier, "with time zone"),
        Type::TIMESTAMP => with_precision("timestamp", modifier, "without time zone"),
        Type::TIMESTAMPTZ => with_precision("timestamp", modifier, "with time zone"),
        _ => kind.name().to_owned(),
    }
}

fn with_precision(name: &str, modifier: i32, zone: &str) -> String {
    if modifier >= 0 { format!("{name}({modifier}) {zone}") } else { format!("{name} {zone}") }
}

/// Modifiers of `varchar`, `char` and `numeric` count the header of a stored value.
const HEADER_BYTES: i32 = 4;

/// The precision and the scale of a modifier of `numeric`, if it has them.
pub(super) fn numeric_modifier(modifier: i32) -> Option<(i32, i32)> {
    let packed = modifier.checked_sub(HEADER_BYTES).filter(|packed| *packed >= 0)?;
    // 16 bits of precision, then 11 bits of scale with a sign since PostgreSQL 15; before, scales were 0 to 1000.
    Some((packed >> 16, ((packed & 0x7ff) ^ 0x400) - 0x400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_format_type() {
        assert_eq!(type_name(&Type::NUMERIC, ((10 << 16) | 2) + 4), "numeric(10,2)");
        assert_eq!(type_name(&Type::NUMERIC, ((3 << 16) | (-2 & 0x7ff)) + 4), "numeric(3,-2)");
        assert_eq!(type_name(&Type::NUMERIC_ARRAY, -1), "numeric[]");
        assert_eq!(type_name(&Type::BPCHAR, 88), "character(84)");
        assert_eq!(type_name(&Type::BPCHAR, -1), "bpchar");
        assert_eq!(type_name(&Type::TIMESTAMPTZ, 3), "timestamp(3) with time zone");
        assert_eq!(type_name(&Type::INT2_VECTOR, -1), "int2vector");
    }
}
