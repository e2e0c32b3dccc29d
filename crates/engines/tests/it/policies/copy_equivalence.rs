//! The invariant of row policies: for every table, policy and query, a principal gets the result, the error and the
//! plan that it would get from a copy with only the visible data, under a policy that allows all of it.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use proptest::prelude::*;
use serde_json::json;
use tidegate_engines::{Engine, EngineOptions};
use tidegate_query::{Database, Mask};

use super::generated_queries::generate_query;
use super::{RestrictedDatabase, key, policy, test_principal};
use crate::support::{Folder, two_thread_options, write_parquet};

static ONE_THREAD: LazyLock<Engine> =
    LazyLock::new(|| Engine::start(EngineOptions { threads: 1, ..two_thread_options() }).unwrap());
static TWO_THREADS: LazyLock<Engine> = LazyLock::new(|| Engine::start(two_thread_options()).unwrap());

#[derive(Debug, Clone)]
struct Row {
    id: Option<i64>,
    tenant: Option<&'static str>,
    amount: Option<i64>,
    note: Option<String>,
    flag: Option<bool>,
}

const COLUMNS: [&str; 5] = ["id", "tenant", "amount", "note", "flag"];

/// A condition, and the rows that it allows for a principal of the tenant north with the number 5 and the teams 1 and
/// 3.
type Policy = (&'static str, fn(&Row) -> bool);

const POLICIES: &[Policy] = &[
    ("tenant = :claims.tenant", |row| row.tenant == Some("north")),
    ("tenant = :claims.tenant OR flag", |row| row.tenant == Some("north") || row.flag == Some(true)),
    ("NOT (tenant = :claims.tenant AND flag)", |row| {
        matches!((row.tenant.map(|tenant| tenant == "north"), row.flag), (Some(false), _) | (_, Some(false)))
    }),
    ("amount >= :claims.number", |row| row.amount.is_some_and(|amount| amount >= 5)),
    ("amount NOT IN (:claims.teams, 0)", |row| row.amount.is_some_and(|amount| ![0, 1, 3].contains(&amount))),
    ("id BETWEEN 2 AND :claims.number", |row| row.id.is_some_and(|id| (2..=5).contains(&id))),
    ("amount > id", |row| matches!((row.amount, row.id), (Some(amount), Some(id)) if amount > id)),
    ("note LIKE '%a%' OR note IS NULL", |row| row.note.as_ref().is_none_or(|note| note.contains('a'))),
    ("tenant <> :claims.nobody OR TRUE", |_| false),
    ("TRUE", |_| true),
];

fn row() -> impl Strategy<Value = Row> {
    let amount = prop_oneof![3 => -3_i64..12, 1 => Just(0), 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let note = prop_oneof![
        Just("a".to_owned()),
        Just("7".to_owned()),
        Just("not a number".to_owned()),
        Just(String::new()),
        "[a-c]{1,12}"
    ];
    let tenant = prop::sample::select(vec!["north", "south", "7"]);
    let id = prop::option::weighted(0.9, 0_i64..9);
    (
        id,
        prop::option::weighted(0.9, tenant),
        prop::option::weighted(0.9, amount),
        prop::option::weighted(0.9, note),
        prop::option::weighted(0.9, any::<bool>()),
    )
        .prop_map(|(id, tenant, amount, note, flag)| Row { id, tenant, amount, note, flag })
}

fn masks() -> impl Strategy<Value = [Option<Mask>; 5]> {
    let mask = prop_oneof![
        8 => Just(None),
        1 => Just(Some(Mask::Deny)),
        1 => Just(Some(Mask::Null)),
        1 => Just(Some(Mask::Hash)),
        1 => Just(Some(Mask::KeepFirst(1))),
        1 => Just(Some(Mask::KeepLast(2))),
    ];
    [mask.clone(), mask.clone(), mask.clone(), mask.clone(), mask]
}

/// The columns of `rows`, masked.
fn table(rows: &[Row], masks: &[Option<Mask>; 5]) -> RecordBatch {
    let number = |of: fn(&Row) -> Option<i64>| Arc::new(Int64Array::from_iter(rows.iter().map(of))) as ArrayRef;
    let text = |of: fn(&Row) -> Option<String>| Arc::new(StringArray::from_iter(rows.iter().map(of))) as ArrayRef;
    let plain: [ArrayRef; 5] = [
        number(|row| row.id),
        text(|row| row.tenant.map(str::to_owned)),
        number(|row| row.amount),
        text(|row| row.note.clone()),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.flag))),
    ];
    let texts: [ArrayRef; 5] = [
        text(|row| row.id.map(|id| id.to_string())),
        plain[1].clone(),
        text(|row| row.amount.map(|amount| amount.to_string())),
        plain[3].clone(),
        text(|row| row.flag.map(|flag| flag.to_string())),
    ];
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (position, mask) in masks.iter().enumerate() {
        let column = match mask {
            Some(Mask::Deny) => continue,
            None => plain[position].clone(),
            Some(Mask::Null) => arrow::array::new_null_array(plain[position].data_type(), rows.len()),
            Some(mask) => {
                let texts = texts[position].as_any().downcast_ref::<StringArray>().unwrap();
                let masked = texts.iter().map(|text| text.and_then(|text| mask.mask_text(text, &key())));
                Arc::new(StringArray::from_iter(masked))
            }
        };
        fields.push(Field::new(COLUMNS[position], column.data_type().clone(), true));
        columns.push(column);
    }
    if columns.is_empty() {
        fields.push(Field::new("nothing", DataType::Int64, true));
        columns.push(Arc::new(Int64Array::from_iter(rows.iter().map(|_| None::<i64>))));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// The database under the policy, and the copy of the visible data. Keeps their folders.
struct Pair {
    limited: RestrictedDatabase,
    copy: RestrictedDatabase,
    _folders: [Folder; 2],
}

fn pair(rows: &[Row], others: &[Row], (text, leaves): Policy, masks: &[Option<Mask>; 5], engine: &Engine) -> Pair {
    let claims = || test_principal(&json!({"tenant": "north", "number": 5, "teams": [1, "3"]}));
    let named: Vec<(&str, Mask)> =
        COLUMNS.into_iter().zip(masks).filter_map(|(name, mask)| Some((name, (*mask)?))).collect();
    let folders = [Folder::new(), Folder::new()];
    for (name, rows) in [("t.parquet", rows), ("u.parquet", others)] {
        write_parquet(&folders[0].join(name), &table(rows, &[None; 5]), 4);
        let seen: Vec<Row> = rows.iter().filter(|row| leaves(row)).cloned().collect();
        write_parquet(&folders[1].join(name), &table(&seen, masks), 1_000);
    }
    let limited = RestrictedDatabase::open(&folders[0].path(), engine, vec![policy("*", text, &named)], claims());
    let copy = RestrictedDatabase::open(&folders[1].path(), engine, vec![policy("*", "TRUE", &[])], claims());
    Pair { limited, copy, _folders: folders }
}

fn sorted(answer: Result<String, String>) -> Result<Vec<String>, ()> {
    let mut lines: Vec<String> = answer.map_err(drop)?.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(32), max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_limited_table_is_a_copy_of_what_is_seen(
        rows in prop::collection::vec(row(), 0..24),
        others in prop::collection::vec(row(), 0..6),
        policy in prop::sample::select(POLICIES.to_vec()),
        masks in masks(),
        questions in prop::collection::vec(generate_query(), 8),
    ) {
        prop_assume!(masks.iter().any(|mask| *mask != Some(Mask::Deny)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pair_of_one = pair(&rows, &others, policy, &masks, &ONE_THREAD);
            let pair_of_two = pair(&rows, &others, policy, &masks, &TWO_THREADS);
            for question in &questions {
                for (pair, is_alone) in [(&pair_of_one, true), (&pair_of_two, false)] {
                    let (limited, copy) = (pair.limited.query(question).await, pair.copy.query(question).await);
                    prop_assert_eq!(&limited.explain, &copy.explain, "{}", question);
                    prop_assert_eq!(limited.estimates, copy.estimates, "{}", question);
                    if is_alone {
                        prop_assert_eq!(limited.answer, copy.answer, "{}", question);
                        continue;
                    }
                    // Partitions run in parallel. So the order of errors, of errors and LIMIT, and of equal rows
                    // depends on timing.
                    if !question.contains("LIMIT") && !question.contains("OVER") {
                        prop_assert_eq!(sorted(limited.answer), sorted(copy.answer), "{}", question);
                    }
                }
            }
            let (limited, copy) = (&pair_of_one.limited, &pair_of_one.copy);
            prop_assert_eq!(limited.columns("t").await, copy.columns("t").await);
            prop_assert_eq!(
                limited.database.catalog(&limited.principal).await.unwrap(),
                copy.database.catalog(&copy.principal).await.unwrap()
            );
            Ok(())
        })?;
    }
}
