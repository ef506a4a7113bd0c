//! Outline of a JSON text: validity, number of values, and positions of a request's members.
//!
//! A parser that builds objects needs up to thirty times the memory of the text. This parser builds no objects: it
//! scans the text once (RFC 8259) and records a few positions. So the node checks a large text before it uses memory
//! for objects, and can copy an id verbatim.

use std::ops::Range;

/// Maximum nesting of arrays and objects; the JSON parser has the same limit.
pub const MAX_LEVELS: usize = 1024;

/// Error: the text is not valid JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct NotJson;

type Step = Result<usize, NotJson>;

/// Outline of a JSON object at the top level of the text: one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Position of the value of the key `id`. If a key is repeated, the last one counts.
    pub id: Option<Range<usize>>,
    pub method: Option<Range<usize>>,
    pub params: Option<Range<usize>>,
}

/// An element of a batch (the top-level array).
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    pub place: Range<usize>,
    pub values: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Form {
    Request(Request),
    /// The first elements of a batch, and the number of all its elements.
    Batch(Vec<Member>, usize),
    Scalar,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Outline {
    pub form: Form,
    /// Number of all JSON values in the text, including keys.
    pub values: usize,
}

/// Scan a text. Records at most `max_members` elements of an array, but validates all elements.
pub fn outline(text: &[u8], max_members: usize) -> Result<Outline, NotJson> {
    // check UTF-8 once for the whole text, so that string scanning only looks for quotes
    std::str::from_utf8(text).map_err(|_| NotJson)?;
    let mut walk = Walk { text, values: 0 };
    let start = walk.space(0);
    let (form, end) = match text.get(start) {
        Some(b'{') => walk.request(start)?,
        Some(b'[') => walk.batch(start, max_members)?,
        _ => (Form::Scalar, walk.value(start, 0)?),
    };
    if walk.space(end) != text.len() {
        return Err(NotJson);
    }
    Ok(Outline { form, values: walk.values })
}

struct Walk<'a> {
    text: &'a [u8],
    values: usize,
}

impl Walk<'_> {
    fn request(&mut self, start: usize) -> Result<(Form, usize), NotJson> {
        self.values += 1;
        let mut found = Request::default();
        let mut at = self.space(start + 1);
        if self.text.get(at) == Some(&b'}') {
            return Ok((Form::Request(found), at + 1));
        }
        loop {
            let key = at;
            let colon = self.key(at)?;
            let name = &self.text[key..colon.0];
            let begin = colon.1;
            let end = self.value(begin, 1)?;
            let place = match name_of(name) {
                Name::Id => Some(&mut found.id),
                Name::Method => Some(&mut found.method),
                Name::Params => Some(&mut found.params),
                Name::Other => None,
            };
            if let Some(place) = place {
                *place = Some(begin..end);
            }
            at = self.space(end);
            match self.text.get(at) {
                Some(b',') => at = self.space(at + 1),
                Some(b'}') => return Ok((Form::Request(found), at + 1)),
                _ => return Err(NotJson),
            }
        }
    }

    fn batch(&mut self, start: usize, max: usize) -> Result<(Form, usize), NotJson> {
        self.values += 1;
        let mut members = Vec::new();
        let mut count = 0;
        let mut at = self.space(start + 1);
        if self.text.get(at) == Some(&b']') {
            return Ok((Form::Batch(members, 0), at + 1));
        }
        loop {
            let before = self.values;
            let end = self.value(at, 1)?;
            if count < max {
                members.push(Member { place: at..end, values: self.values - before });
            }
            count += 1;
            at = self.space(end);
            match self.text.get(at) {
                Some(b',') => at = self.space(at + 1),
                Some(b']') => return Ok((Form::Batch(members, count), at + 1)),
                _ => return Err(NotJson),
            }
        }
    }

    /// Find the end of the JSON value that starts at `at`, without recursion. One bit per nesting level distinguishes
    /// arrays from objects.
    fn value(&mut self, mut at: usize, outer: usize) -> Step {
        let mut is_object = [0u64; MAX_LEVELS / 64];
        let mut level = outer;
        loop {
            self.values += 1;
            at = match self.text.get(at) {
                Some(b'"') => self.string(at)?,
                Some(b'-' | b'0'..=b'9') => self.number(at)?,
                Some(b't') => self.word(at, b"true")?,
                Some(b'f') => self.word(at, b"false")?,
                Some(b'n') => self.word(at, b"null")?,
                Some(&opening @ (b'{' | b'[')) => {
                    if level == MAX_LEVELS {
                        return Err(NotJson);
                    }
                    let (slot, bit) = (level / 64, 1u64 << (level % 64));
                    level += 1;
                    at = self.space(at + 1);
                    if opening == b'{' {
                        is_object[slot] |= bit;
                        if self.text.get(at) != Some(&b'}') {
                            at = self.key(at)?.1;
                            continue;
                        }
                    } else {
                        is_object[slot] &= !bit;
                        if self.text.get(at) != Some(&b']') {
                            continue;
                        }
                    }
                    level -= 1;
                    at + 1
                }
                _ => return Err(NotJson),
            };
            // after a value, close the enclosing array or object, or start the next value
            loop {
                if level == outer {
                    return Ok(at);
                }
                at = self.space(at);
                let is_in_object = is_object[(level - 1) / 64] & (1 << ((level - 1) % 64)) != 0;
                match (self.text.get(at), is_in_object) {
                    (Some(b','), false) => {
                        at = self.space(at + 1);
                        break;
                    }
                    (Some(b','), true) => {
                        let next = self.space(at + 1);
                        at = self.key(next)?.1;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        level -= 1;
                        at += 1;
                    }
                    _ => return Err(NotJson),
                }
            }
        }
    }

    /// Return the end of a key and the start of its value.
    fn key(&mut self, at: usize) -> Result<(usize, usize), NotJson> {
        if self.text.get(at) != Some(&b'"') {
            return Err(NotJson);
        }
        self.values += 1;
        let end = self.string(at)?;
        let colon = self.space(end);
        if self.text.get(colon) != Some(&b':') {
            return Err(NotJson);
        }
        Ok((end, self.space(colon + 1)))
    }

    fn space(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(at) {
            at += 1;
        }
        at
    }

    fn word(&self, at: usize, word: &[u8]) -> Step {
        if self.text[at..].starts_with(word) { Ok(at + word.len()) } else { Err(NotJson) }
    }

    fn digits(&self, mut at: usize) -> Step {
        let start = at;
        while let Some(b'0'..=b'9') = self.text.get(at) {
            at += 1;
        }
        if at == start { Err(NotJson) } else { Ok(at) }
    }

    fn number(&self, mut at: usize) -> Step {
        if self.text[at] == b'-' {
            at += 1;
        }
        at = if self.text.get(at) == Some(&b'0') { at + 1 } else { self.digits(at)? };
        if self.text.get(at) == Some(&b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.text.get(at) {
            at += 1;
            if let Some(b'+' | b'-') = self.text.get(at) {
                at += 1;
            }
            at = self.digits(at)?;
        }
        Ok(at)
    }

    fn string(&self, start: usize) -> Step {
        let mut at = start + 1;
        loop {
            at += plain(&self.text[at..]);
            match self.text.get(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => at = self.escape(at)?,
                _ => return Err(NotJson), // the string contains a control character or has no closing quote
            }
        }
    }

    fn escape(&self, at: usize) -> Step {
        match self.text.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => match self.unit(at)? {
                0xD800..=0xDBFF => match self.unit(at + 6)? {
                    0xDC00..=0xDFFF => Ok(at + 12),
                    _ => Err(NotJson),
                },
                0xDC00..=0xDFFF => Err(NotJson),
                _ => Ok(at + 6),
            },
            _ => Err(NotJson),
        }
    }

    /// Return the code unit of a `\uXXXX` escape.
    fn unit(&self, at: usize) -> Result<u32, NotJson> {
        let written = self.text.get(at..at + 6).filter(|written| written.starts_with(b"\\u")).ok_or(NotJson)?;
        written[2..].iter().try_fold(0, |sum, digit| Ok(sum * 16 + char::from(*digit).to_digit(16).ok_or(NotJson)?))
    }
}

/// Return the number of bytes before the next quote, backslash or control character. The code checks eight bytes at a
/// time.
fn plain(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    while let Some(eight) = text.get(at..at + 8) {
        let word = u64::from_ne_bytes(eight.try_into().expect("eight bytes"));
        let quote = has_zero(word ^ (ONES * u64::from(b'"')));
        let slash = has_zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        if quote | slash | control != 0 {
            break;
        }
        at += 8;
    }
    at + text[at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

enum Name {
    Id,
    Method,
    Params,
    Other,
}

/// Return the name of a quoted JSON key, with escapes resolved (`"\u0069d"` is `id`).
fn name_of(quoted: &[u8]) -> Name {
    let written = &quoted[1..quoted.len() - 1];
    if !written.contains(&b'\\') {
        return match written {
            b"id" => Name::Id,
            b"method" => Name::Method,
            b"params" => Name::Params,
            _ => Name::Other,
        };
    }
    for (name, found) in [("id", Name::Id), ("method", Name::Method), ("params", Name::Params)] {
        if spells(written, name) {
            return found;
        }
    }
    Name::Other
}

/// Return whether a string with escapes equals this ASCII name.
fn spells(mut written: &[u8], name: &str) -> bool {
    for letter in name.bytes() {
        let escaped = format!("\\u{letter:04x}");
        if written.len() >= 6 && written[..6].eq_ignore_ascii_case(escaped.as_bytes()) && written[1] == b'u' {
            written = &written[6..];
        } else if written.first() == Some(&letter) {
            written = &written[1..];
        } else {
            return false;
        }
    }
    written.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Outline, NotJson> {
        outline(text.as_bytes(), 4)
    }

    fn request(text: &str) -> (Option<&str>, Option<&str>, Option<&str>) {
        let Form::Request(found) = of(text).expect("JSON").form else { panic!("no request: {text}") };
        let part = |place: Option<Range<usize>>| place.map(|place| &text[place]);
        (part(found.id), part(found.method), part(found.params))
    }

    #[test]
    fn the_parts_of_a_request_stand_where_they_were_written() {
        let text = r#" { "jsonrpc":"2.0", "id" : 1.50 ,"method":"eth_call","params": [ {"id":7}, [1] ] } "#;
        assert_eq!(request(text), (Some("1.50"), Some("\"eth_call\""), Some(r#"[ {"id":7}, [1] ]"#)));
        assert_eq!(of(text).expect("JSON").values, 14);
        assert_eq!(request("{}"), (None, None, None));
        assert_eq!(request(r#"{"\u0069d":1,"id":2}"#).0, Some("2"));
        assert_eq!(request(r#"{"id":2,"\u0069\u0064":1}"#).0, Some("1"));
        assert_eq!(request(r#"{"\\u0069d":1}"#).0, None);
        assert_eq!(request(r#"{"i\u0064x":1}"#).0, None);
    }

    #[test]
    fn members_of_a_batch_are_counted_and_the_first_remembered() {
        let Outline { form: Form::Batch(members, count), values } = of("[1, [2,3],{\"a\":4} ,5,6]").expect("JSON")
        else {
            panic!("no batch")
        };
        assert_eq!((members.len(), count, values), (4, 5, 10));
        assert_eq!(members[1], Member { place: 4..9, values: 3 });
        assert_eq!(members[2], Member { place: 10..17, values: 3 });
        assert_eq!(of("[]").expect("JSON").form, Form::Batch(vec![], 0));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "]",
            "[1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "nul",
            "truee",
            "01",
            "-",
            "-a",
            "1.",
            ".1",
            "1e",
            "1e+",
            "+1",
            "0x1",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\u{1}\"",
            "\"a\nb\"",
            "1 1",
            "[1]]",
            "{}{}",
            "[}",
            "{]",
            "\u{feff}1",
            "NaN",
            "Infinity",
        ] {
            assert_eq!(of(text), Err(NotJson), "{text:?}");
        }
        assert_eq!(outline(b"\"\xff\"", 4), Err(NotJson));
        assert_eq!(outline(b"\"\xed\xa0\x80\"", 4), Err(NotJson));
    }

    #[test]
    fn what_is_json_is_accepted() {
        for text in [
            "1",
            "-0",
            "-0.5e-7",
            "1E400",
            " null ",
            "\"\"",
            "\"\\u00e9\\ud83d\\ude00\\n\"",
            "[[],{},[{}]]",
            "{\"\":{\"\":[]}}",
            "\"12345678é\"",
        ] {
            assert!(of(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn levels_end_somewhere() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |levels: usize| open.repeat(levels) + "1" + &close.repeat(levels);
            assert!(of(&nested(MAX_LEVELS)).is_ok());
            assert_eq!(of(&nested(MAX_LEVELS + 1)), Err(NotJson));
            assert_eq!(of(&nested(100_000)), Err(NotJson));
        }
    }

    #[test]
    fn strings_end_at_their_quote_wherever_it_stands() {
        for length in 0..40 {
            for wrong in ["\"", "\\", "\u{1f}"] {
                let text = format!("[\"{}{wrong}\"]", "a".repeat(length));
                assert_eq!(of(&text), Err(NotJson), "{text:?}");
            }
            assert!(of(&format!("[\"{}é\"]", "a".repeat(length))).is_ok());
        }
    }
}
