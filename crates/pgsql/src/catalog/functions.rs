//! The functions of the catalogs.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::function::CatalogType::{Any, Element, Flag, Number, Reference, Text, Texts};
use super::function::{CatalogFunction, CatalogType, NO_TEXT, as_number, as_text, text};
use super::objects::{OWNER_NAME, PUBLIC_SCHEMA, VisibleObjects};
use super::{oid, pg_catalog, privilege, reference, settings, types};

/// Functions whose result is the same for every session.
const SESSION_FUNCTIONS: &[CatalogFunction] = &[
    CatalogFunction::new("version", &[], Text, |_, _| {
        Ok(text(format!("PostgreSQL {} (Tidegate {})", settings::VERSION, env!("CARGO_PKG_VERSION"))))
    }),
    CatalogFunction::new("current_schema", &[], Text, |_, _| Ok(text(PUBLIC_SCHEMA))),
    CatalogFunction::new("current_schemas", &[Flag], Texts, |_, args| {
        let implied = matches!(args, [ScalarValue::Boolean(Some(true))]).then_some(super::PG_CATALOG);
        let schemas: Vec<ScalarValue> = implied.into_iter().chain([PUBLIC_SCHEMA]).map(text).collect();
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&schemas, &DataType::Utf8)))
    }),
    CatalogFunction::new("current_database", &[], Text, |objects, _| Ok(text(&objects.database))),
    CatalogFunction::new("current_catalog", &[], Text, |objects, _| Ok(text(&objects.database))),
    CatalogFunction::new("current_user", &[], Text, |objects, _| Ok(text(&objects.user))),
    CatalogFunction::new("current_role", &[], Text, |objects, _| Ok(text(&objects.user))),
    CatalogFunction::new("session_user", &[], Text, |objects, _| Ok(text(&objects.user))),
    CatalogFunction::new("user", &[], Text, |objects, _| Ok(text(&objects.user))),
    CatalogFunction::new("current_setting", &[Text, Flag], Text, |_, args| {
        let name = as_text(args.first());
        match settings::find_value(name) {
            Some(value) => Ok(text(value)),
            None if matches!(args.get(1), Some(ScalarValue::Boolean(Some(true)))) => Ok(NO_TEXT),
            None => {
                exec_err!("unrecognized configuration parameter \"{name}\"; see pg_settings for the available ones")
            }
        }
    })
    .with_required(1),
    CatalogFunction::new("pg_is_in_recovery", &[], Flag, |_, _| Ok(flag(false))),
    CatalogFunction::new("pg_client_encoding", &[], Text, |_, _| Ok(text("UTF8"))),
    CatalogFunction::new("getdatabaseencoding", &[], Text, |_, _| Ok(text("UTF8"))),
    CatalogFunction::new("pg_encoding_to_char", &[Number], Text, |_, args| {
        Ok(text(if as_number(args.first()) == Some(6) { "UTF8" } else { "" }))
    }),
    CatalogFunction::new("pg_my_temp_schema", &[], Number, |_, _| Ok(0_i64.into())),
    CatalogFunction::new("pg_is_other_temp_schema", &[Number], Flag, |_, _| Ok(flag(false))),
];

/// Functions of types and names.
const NAME_FUNCTIONS: &[CatalogFunction] = &[
    CatalogFunction::new("format_type", &[Number, Number], Text, |_, args| {
        let name = |oid| text(types::format_type(oid, as_number(args.get(1))));
        Ok(as_number(args.first()).map_or(NO_TEXT, name))
    })
    .called_on_null_input(),
    CatalogFunction::new("pg_type_is_visible", &[Number], Flag, |_, args| {
        let found = as_number(args.first()).and_then(types::find_by_oid);
        Ok(ScalarValue::Boolean(found.map(|_| true)))
    }),
    CatalogFunction::new("pg_table_is_visible", &[Number], Flag, |objects, args| {
        let table = as_number(args.first()).and_then(|oid| objects.by_oid(oid));
        Ok(ScalarValue::Boolean(table.map(super::VisibleTable::is_visible)))
    }),
    CatalogFunction::new("to_regclass", &[Text], Number, |objects, args| {
        Ok(ScalarValue::Int64(reference::resolve_class(objects, as_text(args.first())).map(|(oid, _)| oid)))
    }),
    CatalogFunction::new("to_regclass_name*", &[Text], Text, |objects, args| {
        Ok(ScalarValue::Utf8(reference::resolve_class(objects, as_text(args.first())).map(|(_, name)| name)))
    }),
    CatalogFunction::new("to_regtype", &[Text], Number, |_, args| {
        Ok(ScalarValue::Int64(types::find_by_name(as_text(args.first())).map(|sql_type| sql_type.oid)))
    }),
    CatalogFunction::new("to_regtype_name*", &[Text], Text, |_, args| {
        Ok(ScalarValue::Utf8(types::find_by_name(as_text(args.first())).map(|sql_type| sql_type.sql_name.clone())))
    }),
    CatalogFunction::new("to_regnamespace", &[Text], Number, |objects, args| {
        Ok(ScalarValue::Int64(objects.schemas.get(as_text(args.first())).copied()))
    }),
    // Clients call it for the columns of indexes, which do not exist here.
    CatalogFunction::new("_pg_expandarray", &[Any], Element, |_, _| {
        exec_err!("_pg_expandarray(x) is not supported; write FROM unnest(x) WITH ORDINALITY AS t(x, n)")
    }),
    CatalogFunction::new("pg_size_pretty", &[Number], Text, |_, args| {
        Ok(as_number(args.first()).map_or(NO_TEXT, |bytes| text(format_size(bytes))))
    }),
    CatalogFunction::new("regclass*", &[Reference], Number, reference::class_oid),
    CatalogFunction::new("regclass_name*", &[Reference], Text, reference::class_name),
    CatalogFunction::new("regtype*", &[Reference], Number, reference::type_oid),
    CatalogFunction::new("regtype_name*", &[Reference], Text, reference::type_name),
    CatalogFunction::new("regnamespace*", &[Reference], Number, reference::schema_oid),
    CatalogFunction::new("regnamespace_name*", &[Reference], Text, reference::schema_name),
    CatalogFunction::new("regrole*", &[Reference], Number, reference::role_oid),
    CatalogFunction::new("regrole_name*", &[Reference], Text, reference::role_name),
    CatalogFunction::new("pg_get_userbyid", &[Number], Text, |objects, args| {
        Ok(text(match as_number(args.first()).unwrap_or_default() {
            oid::OWNER_OID => OWNER_NAME.to_owned(),
            pg_catalog::USER_OID => objects.user.clone(),
            other => format!("unknown (OID={other})"),
        }))
    }),
    CatalogFunction::new("obj_description", &[Number, Text], Text, |objects, args| {
        let table = as_number(args.first()).and_then(|oid| objects.by_oid(oid));
        let of_classes = args.get(1).is_none_or(|catalog| as_text(Some(catalog)) == "pg_class");
        Ok(ScalarValue::Utf8(table.filter(|_| of_classes).and_then(|table| table.comment.clone())))
    })
    .with_required(1),
    CatalogFunction::new("has_table_privilege", &[Reference, Reference, Text], Flag, privilege::has_table_privilege)
        .with_required(2),
    CatalogFunction::new(
        "has_any_column_privilege",
        &[Reference, Reference, Text],
        Flag,
        privilege::has_table_privilege,
    )
    .with_required(2),
    CatalogFunction::new(
        "has_column_privilege",
        &[Reference, Reference, Reference, Text],
        Flag,
        privilege::has_column_privilege,
    )
    .with_required(3),
    CatalogFunction::new("has_schema_privilege", &[Reference, Reference, Text], Flag, privilege::has_schema_privilege)
        .with_required(2),
    CatalogFunction::new(
        "has_database_privilege",
        &[Reference, Reference, Text],
        Flag,
        privilege::has_database_privilege,
    )
    .with_required(2),
];

/// Functions of objects that do not exist here, with their parameters; only the first one is required.
const ABSENT_OBJECT_FUNCTIONS: &[(&str, &[CatalogType])] = &[
    ("col_description", &[Number, Number]),
    ("pg_get_constraintdef", &[Number, Flag]),
    ("pg_get_expr", &[Text, Number, Flag]),
    ("pg_get_function_arguments", &[Number]),
    ("pg_get_function_identity_arguments", &[Number]),
    ("pg_get_function_result", &[Number]),
    ("pg_get_functiondef", &[Number]),
    ("pg_get_indexdef", &[Number, Number, Flag]),
    ("pg_get_partkeydef", &[Number]),
    ("pg_get_ruledef", &[Number, Flag]),
    ("pg_get_serial_sequence", &[Text, Text]),
    ("pg_get_statisticsobjdef_columns", &[Number]),
    ("pg_get_triggerdef", &[Number, Flag]),
    ("pg_get_viewdef", &[Reference, Any]),
    ("shobj_description", &[Number, Text]),
];

/// Functions that check whether an object is visible without its schema, for objects that do not exist here.
const ABSENT_VISIBILITY_FUNCTIONS: &[&str] = &[
    "pg_collation_is_visible",
    "pg_function_is_visible",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_relation_is_publishable",
    "pg_statistics_obj_is_visible",
];

/// Functions that return the size of a table on disk.
const SIZE_FUNCTIONS: &[&str] =
    &["pg_database_size", "pg_indexes_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size"];

static ALL_FUNCTIONS: LazyLock<Vec<CatalogFunction>> = LazyLock::new(|| {
    let absent_objects = ABSENT_OBJECT_FUNCTIONS
        .iter()
        .map(|(name, params)| CatalogFunction::new(name, params, Text, |_, _| Ok(NO_TEXT)).with_required(1));
    let absent_visibility = ABSENT_VISIBILITY_FUNCTIONS
        .iter()
        .map(|name| CatalogFunction::new(name, &[Number], Flag, |_, _| Ok(ScalarValue::Boolean(None))));
    let sizes =
        SIZE_FUNCTIONS.iter().map(|name| CatalogFunction::new(name, &[Reference, Text], Number, size).with_required(1));
    let fixed = SESSION_FUNCTIONS.iter().chain(NAME_FUNCTIONS).copied();
    fixed.chain(absent_objects).chain(absent_visibility).chain(sizes).collect()
});

fn size(_: &VisibleObjects, _: &[ScalarValue]) -> Result<ScalarValue> {
    exec_err!("the size of a table is not available; use the tool list_tables, or SELECT count(*)")
}

/// Formats bytes as PostgreSQL does: `bytes` up to 10240, then the first unit whose value is below 20480, rounded.
fn format_size(bytes: i64) -> String {
    const UNITS: &[&str] = &["kB", "MB", "GB", "TB", "PB"];
    if bytes.unsigned_abs() < 10 * 1_024 {
        return format!("{bytes} bytes");
    }
    // Counts half kilobytes, so that the last bit decides the rounding.
    let mut halves = bytes / 512;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if halves.unsigned_abs() < 20 * 1_024 * 2 - 1 {
            break;
        }
        halves /= 1_024;
        unit = larger;
    }
    format!("{} {unit}", (halves + halves.signum()) / 2)
}

fn flag(value: bool) -> ScalarValue {
    ScalarValue::Boolean(Some(value))
}

/// Returns the catalog functions over `objects`.
pub(crate) fn functions(objects: &Arc<VisibleObjects>) -> Vec<ScalarUDF> {
    ALL_FUNCTIONS.iter().map(|function| function.bind(objects)).collect()
}

/// Whether `name`, in lower case, is a catalog function.
pub(super) fn is_function(name: &str) -> bool {
    ALL_FUNCTIONS.iter().any(|function| function.name() == name)
}
