use std::fmt;

use crate::limits;

/// A topic name: 1 to 1024 bytes of UTF-8 without wildcards and control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic(Box<str>);

impl Topic {
    pub fn parse(text: &str) -> Result<Self, TopicError> {
        Self::check(text)?;
        Ok(Topic(text.into()))
    }

    /// Whether a text is a topic.
    pub fn check(text: &str) -> Result<(), TopicError> {
        if text.is_empty() {
            return Err(TopicError::Empty);
        }
        if text.len() > limits::TOPIC_BYTES {
            return Err(TopicError::TooLong { bytes: text.len() });
        }
        // The usual topic is seen to be one byte by byte.
        if text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'?')) {
            return Ok(());
        }
        match text.char_indices().find(|&(_, c)| matches!(c, '*' | '?') || c.is_control()) {
            None => Ok(()),
            Some((offset, c @ ('*' | '?'))) => Err(TopicError::Wildcard { character: c, offset }),
            Some((offset, c)) => Err(TopicError::Control { code: c as u32, offset }),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is no topic. Offsets are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    #[error("topic is empty; give it 1 to {} bytes", limits::TOPIC_BYTES)]
    Empty,
    #[error("topic is {bytes} bytes; limit {}", limits::TOPIC_BYTES)]
    TooLong { bytes: usize },
    #[error(
        "topic has the wildcard `{character}` at byte {offset}; publish to a topic without wildcards, patterns belong into a subscription"
    )]
    Wildcard { character: char, offset: usize },
    #[error("topic has the control character U+{code:04X} at byte {offset}; remove it")]
    Control { code: u32, offset: usize },
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_and_odd_topics_are_taken() {
        for text in ["a", "order.placed", ".", "a..b", "[x]{y}\\", "$SYS.x", "café.☕", &"x".repeat(1024)] {
            assert_eq!(Topic::parse(text).map(|t| t.as_str().to_owned()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn each_refusal_names_rule_figure_and_place() {
        let cases = [
            ("", TopicError::Empty),
            ("é*", TopicError::Wildcard { character: '*', offset: 2 }),
            ("a?", TopicError::Wildcard { character: '?', offset: 1 }),
            ("a\nb", TopicError::Control { code: 10, offset: 1 }),
            ("a\u{85}", TopicError::Control { code: 0x85, offset: 1 }),
            ("\0", TopicError::Control { code: 0, offset: 0 }),
        ];
        for (text, error) in cases {
            assert_eq!(Topic::parse(text), Err(error));
        }
        let long = "x".repeat(1025);
        let error = Topic::parse(&long).expect_err("one byte too long");
        assert_eq!(error.to_string(), "topic is 1025 bytes; limit 1024");
    }
}
