//! The one request that arrives by the thousand: a signed transaction, alone in its message.
//!
//! ```text
//! {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x..."]}
//! ```
//! Its members may stand in any order, with any space between them. Whatever is not exactly this (another member, an
//! escape, an id that is no plain number, a member twice) is not judged here: the reader of all messages does that.

const METHOD: &[u8] = b"eth_sendRawTransaction";
/// Digits of an id that any reader takes for the same integer.
const ID_DIGITS: usize = 15;

/// A transaction that somebody sends.
#[derive(Debug, PartialEq, Eq)]
pub struct Submission<'a> {
    /// The digits of the request's id.
    pub id: &'a [u8],
    pub raw: Vec<u8>,
}

/// The transaction in a message that holds one and nothing else.
pub fn submission(text: &[u8]) -> Option<Submission<'_>> {
    let mut reader = Reader { text, at: 0 };
    let (mut id, mut raw, mut is_named, mut has_version) = (None, None, false, false);
    reader.token(b'{')?;
    loop {
        let key = reader.string()?;
        reader.token(b':')?;
        match key {
            b"jsonrpc" if !has_version => {
                reader.string()?;
                has_version = true;
            }
            b"id" if id.is_none() => id = Some(reader.number()?),
            b"method" if !is_named => is_named = reader.string()? == METHOD,
            b"params" if raw.is_none() => raw = Some(reader.parameter()?),
            _ => return None,
        }
        match reader.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
        if !is_named && key == b"method" {
            return None;
        }
    }
    reader.space();
    if reader.at != text.len() || !is_named {
        return None;
    }
    Some(Submission { id: id?, raw: unhex(raw?)? })
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        self.space();
        let found = *self.text.get(self.at)?;
        self.at += 1;
        Some(found)
    }

    fn token(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    /// What stands between two quotation marks, where that is plain ASCII.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.token(b'"')?;
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\'))?;
        self.at += end + 1;
        (rest[end] == b'"').then(|| &rest[..end])
    }

    fn number(&mut self) -> Option<&'a [u8]> {
        self.space();
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        // `1.5` and `1e3` end at something that `next` does not take
        self.at += end;
        let is_plain = (1..=ID_DIGITS).contains(&end) && (rest[0] != b'0' || end == 1);
        is_plain.then(|| &rest[..end])
    }

    /// The one member of a list, and its digits.
    fn parameter(&mut self) -> Option<&'a [u8]> {
        self.token(b'[')?;
        let found = self.string()?;
        self.token(b']')?;
        found.strip_prefix(b"0x")
    }
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let mut wrong = !rest.is_empty() as u8;
    let raw = pairs
        .iter()
        .map(|[high, low]| {
            let (high, low) = (VALUES[*high as usize], VALUES[*low as usize]);
            wrong |= (high | low) & 0xf0;
            high << 4 | low & 0x0f
        })
        .collect();
    (wrong == 0).then_some(raw)
}

/// The value of each digit, 0xff for what is none.
const VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = r#"{"jsonrpc":"2.0","id":12,"method":"eth_sendRawTransaction","params":["0x02aBfF"]}"#;

    #[test]
    fn the_usual_forms_are_read() {
        let spaced = "{ \"method\": \"eth_sendRawTransaction\",\n\"params\": [ \"0x02abff\" ], \"id\": 12, \"jsonrpc\": \"2.0\" } ";
        for text in [USUAL, spaced, r#"{"id":12,"method":"eth_sendRawTransaction","params":["0x02abff"]}"#] {
            let found = submission(text.as_bytes()).expect(text);
            assert_eq!(found, Submission { id: b"12", raw: vec![2, 0xab, 0xff] }, "{text}");
        }
        assert_eq!(submission(USUAL.replace("02aBfF", "").as_bytes()).unwrap().raw, b"");
        assert_eq!(submission(USUAL.replace("12", "0").as_bytes()).unwrap().id, b"0");
    }

    #[test]
    fn everything_else_is_left_to_others() {
        let others = [
            USUAL.replace("12", "012"),
            USUAL.replace("12", "-1"),
            USUAL.replace("12", "1.5"),
            USUAL.replace("12", "1e3"),
            USUAL.replace("12", "1234567890123456"),
            USUAL.replace("12", "\"12\""),
            USUAL.replace("12", "null"),
            USUAL.replace("\"id\":12,", ""),
            USUAL.replace("Raw", "\\u0052aw"),
            USUAL.replace("Raw", ""),
            USUAL.replace("02aBfF", "02aBf"),
            USUAL.replace("02aBfF", "02aBfg"),
            USUAL.replace("0x02", "0X02"),
            USUAL.replace("0x02aBfF", ""),
            USUAL.replace("[\"0x02aBfF\"]", "[]"),
            USUAL.replace("[\"0x02aBfF\"]", "[\"0x02\",\"0x03\"]"),
            USUAL.replace("[\"0x02aBfF\"]", "\"0x02\""),
            USUAL.replace("\"id\":12", "\"id\":12,\"id\":12"),
            USUAL.replace("\"id\":12", "\"id\":12,\"other\":1"),
            USUAL.replace("2.0", "2.\u{e9}"),
            format!("[{USUAL}]"),
            format!("{USUAL}x"),
            format!("{USUAL}{USUAL}"),
            USUAL.replace(":12,", ":12,,"),
            USUAL.replace(']', "],"),
        ];
        for text in others {
            assert_eq!(submission(text.as_bytes()), None, "{text}");
        }
        for end in 0..USUAL.len() {
            assert_eq!(submission(&USUAL.as_bytes()[..end]), None, "cut off at {end}");
        }
    }
}
