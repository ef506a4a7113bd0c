//! Shape of a document: its text without the values of plain literals.
//!
//! Most documents differ from an earlier document only in a block number or hash. Documents of the same shape share a
//! cached plan; only their literals differ. Removing the literals takes 1 µs, and parsing a document takes about 50 µs.

/// Cache key and literals of a document.
pub struct Shape {
    /// Cache key: the document with every number as `0` and every string as `""`.
    pub key: Vec<u8>,
    pub literals: Vec<Literal>,
    pub longest_name: usize,
    /// False if the text has escapes, block strings or fractions. The key then contains the literals, so the document
    /// shares its plan with no other document.
    pub is_plain: bool,
}

/// Start and end of a literal in the document: a number, or the content of a string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal {
    pub start: usize,
    pub end: usize,
}

impl Literal {
    pub fn of(self, text: &str) -> &str {
        &text[self.start..self.end]
    }
}

fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Return the first index, from `at` on, of a byte that does not satisfy `fits`.
fn while_is(text: &[u8], at: usize, fits: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|byte| !fits(*byte)).map_or(text.len(), |length| at + length)
}

pub fn shape_of(document: &str) -> Shape {
    let text = document.as_bytes();
    let mut shape =
        Shape { key: Vec::with_capacity(text.len()), literals: Vec::new(), longest_name: 0, is_plain: true };
    let mut at = 0;
    while at < text.len() {
        let end = match text[at] {
            b'"' => shape.string(text, at),
            b'-' | b'0'..=b'9' => shape.number(text, at),
            b'#' => shape.copy(text, at, while_is(text, at, |byte| byte != b'\n' && byte != b'\r')),
            byte if is_name(byte) => {
                let end = while_is(text, at, is_name);
                shape.longest_name = shape.longest_name.max(end - at);
                shape.copy(text, at, end)
            }
            _ => shape.copy(text, at, at + 1),
        };
        at = end;
    }
    shape
}

impl Shape {
    fn copy(&mut self, text: &[u8], start: usize, end: usize) -> usize {
        self.key.extend_from_slice(&text[start..end]);
        end
    }

    fn string(&mut self, text: &[u8], at: usize) -> usize {
        let end = while_is(text, at + 1, |byte| !matches!(byte, b'"' | b'\\' | b'\n' | b'\r'));
        let is_block = text[at..].starts_with(b"\"\"\"");
        if end >= text.len() || text[end] != b'"' || is_block {
            self.is_plain = false;
            return self.copy(text, at, text.len());
        }
        self.literals.push(Literal { start: at + 1, end });
        self.key.extend_from_slice(b"\"\"");
        end + 1
    }

    fn number(&mut self, text: &[u8], at: usize) -> usize {
        let end = while_is(text, at + 1, |byte| is_name(byte) || byte == b'.' || byte == b'+' || byte == b'-');
        let digits = &text[at + usize::from(text[at] == b'-')..end];
        // the number is a fraction or invalid: do not share the plan of this document, and let the parser decide
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) || (digits[0] == b'0' && digits.len() > 1) {
            self.is_plain = false;
            return self.copy(text, at, end);
        }
        self.literals.push(Literal { start: at, end });
        self.key.push(b'0');
        end
    }
}

/// Map a position in one document to the same position in another document of the same shape.
pub fn moved(at: usize, from: &[Literal], to: &[Literal]) -> usize {
    match from.partition_point(|literal| literal.end <= at) {
        0 => at,
        passed => to[passed - 1].end + (at - from[passed - 1].end),
    }
}

/// Return line and column of a position, both counted from 1. Columns count characters.
pub fn line_and_column(document: &str, at: usize) -> (usize, usize) {
    let before = document.get(..at).unwrap_or(document);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_leave_the_shape() {
        let one = shape_of(r#"{block(number:17){a1:hash} transaction(hash:"0xab")}"#);
        let other = shape_of(r#"{block(number:-4711){a1:hash} transaction(hash:"")}"#);
        assert_eq!(one.key, other.key);
        assert!(one.is_plain && other.is_plain);
        let text = r#"{block(number:17){a1:hash} transaction(hash:"0xab")}"#;
        assert_eq!(one.literals.iter().map(|literal| literal.of(text)).collect::<Vec<_>>(), ["17", "0xab"]);
    }

    #[test]
    fn unusual_literals_are_not_shared() {
        for text in [r#"{a(b:"x\"y")}"#, r#"{a(b:"""x""")}"#, "{a(b:1.5)}", "{a(b:1e3)}", "{a(b:007)}", r#"{a(b:"x"#] {
            assert!(!shape_of(text).is_plain, "{text}");
        }
    }

    #[test]
    fn kinds_of_literals_stay_in_the_shape() {
        assert_ne!(shape_of("{a(b:1)}").key, shape_of(r#"{a(b:"1")}"#).key);
        assert_eq!(shape_of("{a # 5 \"\n b}").literals, []);
    }

    #[test]
    fn places_move_with_the_literals_before_them() {
        let (one, other) = ("{a(b:1) c(d:\"x\") e}", "{a(b:1000) c(d:\"\") e}");
        let (from, to) = (shape_of(one).literals, shape_of(other).literals);
        for name in ["a", "b", "c", "d", "e", "}"] {
            assert_eq!(moved(one.find(name).unwrap(), &from, &to), other.find(name).unwrap(), "{name}");
        }
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        assert_eq!(line_and_column("{a}", 1), (1, 2));
        assert_eq!(line_and_column("{\n  é b}", 7), (2, 5));
        assert_eq!(line_and_column("a", 99), (1, 2));
    }
}
