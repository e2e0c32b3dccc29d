//! Random statements in PostgreSQL and over files.

use proptest::collection::vec;
use proptest::num::u16;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::corpus::CorpusStatement;
use super::generator::Grammar;
use super::report::Report;
use super::{ComparedEngines, JudgedStatement, judge_all, publish, setting};

const CHOICES_MAX: usize = 40;
/// Failures that are made shorter, and the steps for each.
const SHRUNK_MAX: usize = 25;
const SHRINKING_STEPS_MAX: usize = 60;

/// The same numbers in each run, unless `TIDEGATE_DIFFERENTIAL_SEED` names others.
fn runner() -> TestRunner {
    let seed: u64 = setting("_SEED").map_or(15, |seed| seed.parse().unwrap());
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn generated(area: &str, number: usize, sql: String) -> CorpusStatement {
    CorpusStatement { area: area.to_owned(), line: number, sql, refused: None }
}

/// Makes the statement shorter as long as it fails.
async fn shrunk(
    sides: &ComparedEngines,
    grammar: &Grammar,
    mut tree: impl ValueTree<Value = Vec<u16>>,
    failed: JudgedStatement,
) -> JudgedStatement {
    let mut last = failed;
    for _ in 0..SHRINKING_STEPS_MAX {
        if !tree.simplify() {
            break;
        }
        let sql = grammar.statement(&tree.current());
        if sql == last.statement.sql {
            continue;
        }
        let judged = sides.judge_statement(0, generated("generated", last.statement.line, sql)).await;
        if judged.fails() {
            last = judged;
        } else if !tree.complicate() {
            break;
        }
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_statements_are_answered_as_postgresql_answers_them() {
    let grammar = Grammar::read();
    let sides = ComparedEngines::open().await;
    let cases = Config::default().cases;
    let mut runner = runner();
    let strategy = vec(u16::ANY, 0..CHOICES_MAX);
    let trees: Vec<_> = (0..cases).map(|_| strategy.new_tree(&mut runner).unwrap()).collect();
    let forms = grammar.each_form().into_iter().enumerate().map(|(number, sql)| generated("forms", number + 1, sql));
    let random = trees.iter().map(|tree| grammar.statement(&tree.current())).enumerate();
    let random = random.map(|(number, sql)| generated("generated", number + 1, sql));
    let statements = forms.chain(random).collect();
    let mut judged = Vec::new();
    let mut left = SHRUNK_MAX;
    for found in judge_all(&sides, statements).await {
        if found.statement.area == "generated" && found.fails() && left > 0 {
            left -= 1;
            let tree = trees[found.statement.line - 1].clone();
            judged.push(shrunk(&sides, &grammar, tree, found).await);
        } else {
            judged.push(found);
        }
    }
    let report = Report::new(&judged);
    publish("differential-generated", &report.text);
    if setting("_REPORT").is_none() {
        assert!(report.failures.is_empty(), "{} statements fail; the list is above", report.failures.len());
    }
}
