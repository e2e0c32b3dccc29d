//! Which channels differ from the scenario or from each other, and how.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::channel::Channel;
use super::outcome::{Outcome, Refusal, StepResult, masked};
use super::step::{ExpectedRefusal, Message, Step};

/// The result of each step on each channel, by step number.
type Replays = [BTreeMap<usize, StepResult>];

/// The differences; empty if there are none.
pub(super) fn differences(steps: &[Step], channels: &[Channel], replays: &Replays) -> String {
    let mut message = String::new();
    for (number, step) in steps.iter().enumerate() {
        let filter_maps =
            channels.iter().zip(replays).filter_map(|(channel, received)| Some((channel, received.get(&number)?)));
        let received: Vec<(&Channel, &StepResult)> = filter_maps.collect();
        let mut of_step = from_scenario(step, &received);
        if of_step.is_empty() && !step.differs() {
            of_step = from_each_other(&received);
        }
        if !of_step.is_empty() {
            let _ = writeln!(message, "\n{}{of_step}", step.name);
        }
    }
    message
}

/// The channels that differ from the scenario, grouped by their result.
fn from_scenario(step: &Step, received: &[(&Channel, &StepResult)]) -> String {
    let (mut right, mut wrong) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    let mut expected = String::new();
    for (channel, step_result) in received {
        match step.unmet_by(channel, &step_result.outcome) {
            None => right.push(channel.to_string()),
            Some(unmet) => {
                expected = unmet;
                wrong.entry(step_result.outcome.clone().shortened().to_string()).or_default().push(channel.to_string());
            }
        }
    }
    if wrong.is_empty() {
        return String::new();
    }
    let mut message = format!("\n  wanted {expected}");
    if !right.is_empty() {
        let _ = write!(message, "\n  so it is on {}", right.join(", "));
    }
    for (outcome, channels) in wrong {
        let _ = write!(message, "\n  on {}: {outcome}", channels.join(", "));
    }
    message
}

/// The channels of one MCP revision whose complete messages differ.
fn from_each_other(received: &[(&Channel, &StepResult)]) -> String {
    let mut by_revision = BTreeMap::<&str, Vec<(&Channel, &Value)>>::new();
    for (channel, step_result) in received {
        if let Some(raw) = &step_result.raw {
            by_revision.entry(channel.revision.name()).or_default().push((channel, raw));
        }
    }
    let mut rendered = String::new();
    for text in by_revision.values() {
        let (first, first_received) = text[0];
        for (channel, other_received) in text.iter().filter(|(_, text)| *text != first_received) {
            let _ = write!(
                rendered,
                "\n  over {first} the message is {first_received}\n  over {channel} it is {other_received}"
            );
        }
    }
    rendered
}

impl Outcome {
    /// The same with long texts shortened.
    fn shortened(self) -> Self {
        match self {
            Self::Answered(value) => Self::Answered(masked(&value)),
            refused @ Self::Refused(_) => refused,
        }
    }
}

impl Step {
    /// The expected outcome, if `outcome` differs from it.
    fn unmet_by(&self, channel: &Channel, outcome: &Outcome) -> Option<String> {
        let is_met = match (outcome, &self.answered, &self.refused) {
            (Outcome::Answered(value), Some(expected), _) => masked(value) == *expected,
            (Outcome::Refused(refusal), _, Some(expected_refusal)) => expected_refusal.is_met_by(channel, refusal),
            _ => false,
        };
        let expected = || match (&self.answered, &self.refused) {
            (Some(answered), _) => format!("answered {answered}"),
            (None, Some(ExpectedRefusal { kind, message })) => {
                format!("refused {kind}: {:?}", message.over(channel).unwrap_or("in words that stand nowhere"))
            }
            (None, None) => "nothing".to_owned(),
        };
        (!is_met).then(expected)
    }
}

impl ExpectedRefusal {
    fn is_met_by(&self, channel: &Channel, refusal: &Refusal) -> bool {
        let is_of_kind = refusal.kind.as_ref().is_none_or(|kind| *kind == self.kind);
        is_of_kind && self.message.over(channel) == Some(refusal.message.as_str())
    }
}

impl Message {
    /// The text for one transport.
    fn over(&self, channel: &Channel) -> Option<&str> {
        match self {
            Self::Everywhere(message) => Some(message),
            Self::ByTransport(messages) => messages.get(channel.transport.name()).and_then(Value::as_str),
        }
    }
}

#[test]
fn reports_differences_by_channel() {
    let step = serde_json::json!({
        "name": "an unknown tool",
        "ask": {"call": {"tool": "x"}},
        "refused": {"kind": "not_found", "message": "there is no tool \"x\""},
    });
    let steps = [serde_json::from_value(step).unwrap()];
    let received = |outcome, raw: Value| BTreeMap::from([(0, StepResult { outcome, raw: Some(raw) })]);
    let right = || Outcome::refused(Some("not_found"), "there is no tool \"x\"");
    let wrong = || Outcome::Answered(serde_json::json!({"content": []}));
    let channels = &Channel::all()[2..5];
    let rendered = |outcomes: [(Outcome, i64); 3]| {
        differences(&steps, channels, &outcomes.map(|(outcome, code)| received(outcome, code.into())))
    };
    assert_eq!(rendered([(right(), 1), (right(), 2), (right(), 1)]), "");
    insta::assert_snapshot!(rendered([(right(), 1), (wrong(), 2), (wrong(), 1)]), @r#"
    an unknown tool
      wanted refused not_found: "there is no tool \"x\""
      so it is on stdio 2026-07-28
      on http 2025-11-25, http 2026-07-28: answered {"content":[]}
    "#);
    insta::assert_snapshot!(rendered([(right(), 1), (right(), 1), (right(), 2)]), @r"
    an unknown tool
      over stdio 2026-07-28 the message is 1
      over http 2026-07-28 it is 2
    ");
}
