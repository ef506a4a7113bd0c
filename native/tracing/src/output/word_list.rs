//! A list of words that is written repeatedly with few changes, such as stack and memory at every instruction.
//!
//! Formatting words takes most of the time of a struct log row. So this type caches the text of the last list and
//! formats only changed words again.

use alloy_primitives::U256;

use crate::output::text;

/// Text length of a formatted word: 64 hex digits, two quotes and a comma.
const WIDTH: usize = 67;
/// Maximum number of cached words. This is enough for a whole stack, or the beginning of a large memory.
const MAX_WORDS: usize = 2048;

pub trait Word: Copy + PartialEq {
    fn bytes(self) -> [u8; 32];
}

impl Word for U256 {
    #[inline]
    fn bytes(self) -> [u8; 32] {
        self.to_be_bytes()
    }
}

impl Word for [u8; 32] {
    #[inline]
    fn bytes(self) -> [u8; 32] {
        self
    }
}

pub struct Repeated<T> {
    words: Vec<T>,
    text: Vec<u8>,
}

// Implement Default by hand, because derive would require T: Default.
impl<T> Default for Repeated<T> {
    fn default() -> Self {
        Repeated { words: Vec::new(), text: Vec::new() }
    }
}

impl<T: Word> Repeated<T> {
    /// Append the list of words in brackets.
    pub fn write(&mut self, out: &mut Vec<u8>, list: &[T]) {
        let (kept, beyond) = list.split_at(list.len().min(MAX_WORDS));
        self.follow(kept);
        out.reserve(list.len() * WIDTH + 2);
        out.push(b'[');
        out.extend_from_slice(&self.text);
        for word in beyond {
            out.extend_from_slice(&text_of(*word));
        }
        if !list.is_empty() {
            out.pop();
        }
        out.push(b']');
    }

    fn follow(&mut self, list: &[T]) {
        self.words.truncate(list.len());
        self.text.truncate(list.len() * WIDTH);
        for (at, (shown, word)) in self.words.iter_mut().zip(list).enumerate() {
            if shown != word {
                *shown = *word;
                self.text[at * WIDTH..][..WIDTH].copy_from_slice(&text_of(*word));
            }
        }
        for word in &list[self.words.len()..] {
            self.words.push(*word);
            self.text.extend_from_slice(&text_of(*word));
        }
    }
}

#[inline]
fn text_of<T: Word>(word: T) -> [u8; WIDTH] {
    let mut text = [b','; WIDTH];
    text[..WIDTH - 1].copy_from_slice(&text::word(word.bytes()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(list: &[U256]) -> String {
        format!("[{}]", list.iter().map(|word| format!("\"{word:064x}\"")).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn every_list_is_written_in_full() {
        let mut repeated = Repeated::default();
        let long: Vec<U256> = (0..MAX_WORDS as u64 + 3).map(U256::from).collect();
        let other: Vec<U256> = long.iter().rev().copied().collect();
        let lists: [&[U256]; 9] =
            [&[], &long[..3], &long[..2], &other[..3], &[], &long, &other, &long[1..], &long[5..6]];
        for list in lists {
            let mut out = b"x".to_vec();
            repeated.write(&mut out, list);
            assert_eq!(String::from_utf8(out).unwrap(), "x".to_owned() + &plain(list));
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut repeated = Repeated::default();
        repeated.write(&mut Vec::new(), &vec![[7_u8; 32]; 10 * MAX_WORDS]);
        assert_eq!((repeated.words.len(), repeated.text.len()), (MAX_WORDS, MAX_WORDS * WIDTH));
    }
}
