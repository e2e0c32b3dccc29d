//! `to_number`: text read by a pattern of numbers.

use super::number_pattern::{NumberField, NumberPattern, SignPlace};
use super::pattern::PatternNode;

/// Reads the digits at the positions of the pattern's digits, with their sign and point.
pub(super) fn read_number(text: &str, pattern: &NumberPattern) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut reader = NumberReader {
        pattern,
        text: &characters,
        at: 0,
        sign: None,
        digits: String::new(),
        before: 0,
        after: 0,
        has_point: false,
        was_read: false,
    };
    for node in &pattern.nodes {
        if reader.at >= reader.text.len() {
            break;
        }
        reader.node(node);
    }
    let digits = reader.digits.trim_end_matches('.');
    format!("{}{digits}", reader.sign.map_or(String::new(), String::from))
}

struct NumberReader<'a> {
    pattern: &'a NumberPattern,
    text: &'a [char],
    at: usize,
    sign: Option<char>,
    digits: String,
    before: usize,
    after: usize,
    has_point: bool,
    was_read: bool,
}

impl NumberReader<'_> {
    fn current(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn is_data(character: char) -> bool {
        character.is_ascii_digit() || matches!(character, '.' | ',' | '+' | '-')
    }

    /// Skips up to `count` characters that cannot belong to a number.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            if self.current().is_none_or(Self::is_data) {
                break;
            }
            self.at += 1;
        }
    }

    fn node(&mut self, node: &PatternNode<NumberField>) {
        let PatternNode::Field(node) = node else {
            self.at += 1;
            return;
        };
        match node.field {
            NumberField::Nine | NumberField::Zero | NumberField::Point => {
                self.digit(node.field);
                self.at += 1;
            }
            NumberField::Comma | NumberField::Group
                if self.current() == Some(',') && (self.was_read || !self.pattern.is_filled || self.before > 0) =>
            {
                self.at += 1;
            }
            NumberField::Currency => self.skip_other(1),
            NumberField::Ordinal { .. } => self.skip_other(2),
            NumberField::Minus if self.current() == Some('-') => self.take_sign('-'),
            NumberField::Plus if self.current() == Some('+') => self.take_sign('+'),
            NumberField::Minus | NumberField::Plus => self.skip_other(1),
            NumberField::Sign => match self.current() {
                Some('-') => self.take_sign('-'),
                Some('+') => self.take_sign('+'),
                _ => self.skip_other(1),
            },
            _ => {}
        }
    }

    fn take_sign(&mut self, sign: char) {
        self.sign = Some(sign);
        self.at += 1;
    }

    fn digit(&mut self, field: NumberField) {
        let pattern = self.pattern;
        let mut is_read = false;
        if self.current() == Some(' ') {
            self.at += 1;
        }
        if self.current().is_none() {
            return;
        }
        if self.sign.is_none() && field != NumberField::Point && self.before + self.after == 0 {
            let is_open = pattern.has_brackets && self.current() == Some('<');
            if !pattern.has_locale_sign || pattern.sign_place == SignPlace::Before {
                match self.current() {
                    Some('-') => self.take_sign('-'),
                    Some('+') => self.take_sign('+'),
                    _ if is_open => self.take_sign('-'),
                    _ => {}
                }
            } else if matches!(self.current(), Some('-' | '+')) {
                self.sign = self.current();
                self.at += 1;
            }
        }
        let Some(current) = self.current() else { return };
        if current.is_ascii_digit() {
            if self.has_point && self.after == pattern.after {
                // Characters without a counterpart in the pattern are not read.
                return;
            }
            self.digits.push(current);
            if self.has_point {
                self.after += 1
            } else {
                self.before += 1
            }
            is_read = true;
        } else if pattern.has_point && !self.has_point && current == '.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        self.was_read = is_read;
        if self.sign.is_some() || self.before + self.after == 0 {
            return;
        }
        let next = self.text.get(self.at + 1).copied();
        if pattern.has_locale_sign && is_read && matches!(next, Some('-' | '+')) {
            self.sign = next;
            self.at += 1;
        } else if !is_read
            && !pattern.has_locale_sign
            && (pattern.has_plus || pattern.has_minus)
            && matches!(current, '-' | '+')
        {
            self.sign = Some(current);
        }
    }
}
