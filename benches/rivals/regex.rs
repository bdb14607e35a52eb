//! regex-automata: all patterns in one automaton, whose states are made as topics come.

use regex_automata::hybrid::dfa::{Cache, DFA, OverlappingState};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use super::Rival;

/// Enough that no state of a thousand patterns is ever thrown away.
const CACHE_BYTES: usize = 256 * 1024 * 1024;

pub struct Regexes {
    dfa: DFA,
    cache: Cache,
}

impl Rival for Regexes {
    const NAME: &str = "regex-automata, lazy DFA";

    fn translate(text: &str) -> Option<String> {
        let mut regex = String::new();
        let (mut braces, mut is_class) = (0, false);
        for c in text.chars() {
            match c {
                '[' | ']' => {
                    is_class = c == '[';
                    regex.push(c);
                }
                _ if is_class => regex.push(c),
                '*' => regex += ".*",
                '?' => regex.push('.'),
                '{' => {
                    braces += 1;
                    regex += "(?:";
                }
                '}' => {
                    braces -= 1;
                    regex.push(')');
                }
                ',' if braces > 0 => regex.push('|'),
                _ if c.is_ascii_alphanumeric() => regex.push(c),
                _ => regex.extend(['\\', c]),
            }
        }
        Some(regex + "\\z")
    }

    fn build(texts: &[String]) -> Result<Self, String> {
        let nfa = thompson::Config::new().which_captures(thompson::WhichCaptures::None);
        let dfa = DFA::config().match_kind(MatchKind::All).cache_capacity(CACHE_BYTES);
        let dfa = DFA::builder()
            .configure(dfa)
            .thompson(nfa)
            .syntax(syntax::Config::new().dot_matches_new_line(true))
            .build_many(texts)
            .map_err(|error| error.to_string())?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache })
    }

    fn matching(&mut self, topic: &str, found: &mut Vec<usize>) {
        let input = Input::new(topic).anchored(Anchored::Yes);
        let mut state = OverlappingState::start();
        loop {
            let searched = self.dfa.try_search_overlapping_fwd(&mut self.cache, &input, &mut state);
            searched.expect("no byte makes it give up");
            let Some(end) = state.get_match() else { break };
            found.push(end.pattern().as_usize());
        }
    }
}
