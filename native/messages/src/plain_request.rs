//! Fast path: parses plain JSON-RPC requests.
//!
//! ```text
//! {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x...","latest"]}
//! ```
//!
//! Keys may be in any order, with any whitespace. All other requests go to the slow path, the JSON parser of
//! `rpc/dispatch/dispatcher.py`. Requests are not plain if they have other or repeated keys, escapes, or ids that are
//! not plain integers. The same holds for parameters other than strings, booleans and objects of strings.
//! `tests/unit/native/test_messages.py` compares both paths. The fast path decodes the parameter of
//! `eth_sendRawTransaction` to bytes.

const SENDS: &[u8] = b"eth_sendRawTransaction";
/// Maximum number of digits of an id. Clients that parse numbers as doubles would change longer ids.
const ID_DIGITS: usize = 15;

/// A plain JSON-RPC request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Digits of the request id.
    pub id: &'a [u8],
    pub method: &'a [u8],
    pub params: Params<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Params<'a> {
    /// Raw transaction: the parameter of eth_sendRawTransaction, decoded to bytes.
    Transaction(Vec<u8>),
    Plain(Vec<Param<'a>>),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Param<'a> {
    Word(&'a [u8]),
    Truth(bool),
    /// An object such as a call: names and strings in order. If a name is repeated, the last value counts.
    Fields(Vec<(&'a [u8], &'a [u8])>),
}

/// Parse a plain request. Returns None for any other text.
pub fn parse(text: &[u8]) -> Option<Request<'_>> {
    let mut reader = Reader { text, at: 0 };
    let (mut id, mut method, mut params, mut has_version) = (None, None, None, false);
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
            b"method" if method.is_none() => method = Some(reader.string()?),
            b"params" if params.is_none() => params = Some(reader.params()?),
            _ => return None,
        }
        match reader.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    reader.space();
    let (id, method, params) = (id?, method?, params?);
    (reader.at == text.len()).then(|| Request { id, method, params: read(method, params) })
}

fn read<'a>(method: &[u8], params: Vec<Param<'a>>) -> Params<'a> {
    if let (SENDS, [Param::Word(word)]) = (method, params.as_slice())
        && let Some(raw) = word.strip_prefix(b"0x").and_then(unhex)
    {
        return Params::Transaction(raw);
    }
    Params::Plain(params)
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

    fn token(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    /// Read a string of plain ASCII without escapes; None for any other text.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.token(b'"')?;
        let rest = &self.text[self.at..];
        let end = plain(rest);
        let end = end + rest[end..].iter().position(|byte| !is_plain(*byte))?;
        self.at += end + 1;
        (rest[end] == b'"').then(|| &rest[..end])
    }

    fn number(&mut self) -> Option<&'a [u8]> {
        self.space();
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        // read only the digits: for `1.5` or `1e3`, the request is rejected at the next character
        self.at += end;
        let is_plain = (1..=ID_DIGITS).contains(&end) && (rest[0] != b'0' || end == 1);
        is_plain.then(|| &rest[..end])
    }

    fn params(&mut self) -> Option<Vec<Param<'a>>> {
        let mut found = Vec::new();
        self.token(b'[')?;
        if self.ends(b']') {
            return Some(found);
        }
        loop {
            found.push(self.param()?);
            match self.next()? {
                b',' => {}
                b']' => return Some(found),
                _ => return None,
            }
        }
    }

    fn param(&mut self) -> Option<Param<'a>> {
        self.space();
        let rest = &self.text[self.at..];
        for (word, truth) in [(b"true".as_slice(), true), (b"false", false)] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Some(Param::Truth(truth));
            }
        }
        match rest.first()? {
            b'{' => self.fields().map(Param::Fields),
            _ => self.string().map(Param::Word),
        }
    }

    fn fields(&mut self) -> Option<Vec<(&'a [u8], &'a [u8])>> {
        let mut found = Vec::new();
        self.token(b'{')?;
        if self.ends(b'}') {
            return Some(found);
        }
        loop {
            let name = self.string()?;
            self.token(b':')?;
            found.push((name, self.string()?));
            match self.next()? {
                b',' => {}
                b'}' => return Some(found),
                _ => return None,
            }
        }
    }

    /// Skip `expected` if it is the next character after whitespace. Returns whether it was.
    fn ends(&mut self, expected: u8) -> bool {
        self.space();
        let is_here = self.text.get(self.at) == Some(&expected);
        self.at += is_here as usize;
        is_here
    }
}

/// Return whether a character may appear in a JSON string without an escape.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Return the number of bytes before the first character that needs an escape, rounded down to a multiple of sixteen.
/// Checking sixteen bytes at a time saves time, because transactions and call data are long.
fn plain(text: &[u8]) -> usize {
    let (chunks, _) = text.as_chunks::<16>();
    let are_plain = |chunk: &&[u8; 16]| chunk.iter().fold(true, |plain, byte| plain & is_plain(*byte));
    16 * chunks.iter().take_while(are_plain).count()
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

/// Value of each hex digit; 0xff for other bytes.
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

    const PLAIN: &str = r#"{"jsonrpc":"2.0","id":12,"method":"eth_getBlockByNumber","params":["latest",false]}"#;
    const SENT: &str = r#"{"jsonrpc":"2.0","id":12,"method":"eth_sendRawTransaction","params":["0x02aBfF"]}"#;

    fn plain(text: &str) -> Vec<Param<'_>> {
        match parse(text.as_bytes()).expect(text).params {
            Params::Plain(params) => params,
            Params::Transaction(raw) => panic!("{raw:?} in {text}"),
        }
    }

    #[test]
    fn plain_requests_are_parsed() {
        let spaced = "{ \"method\": \"eth_getBlockByNumber\",\n\"params\": [ \"latest\" , false ], \"id\": 12, \"jsonrpc\": \"2.0\" } ";
        for text in [PLAIN, spaced, &PLAIN.replace("\"jsonrpc\":\"2.0\",", "")] {
            let found = parse(text.as_bytes()).expect(text);
            assert_eq!((found.id, found.method), (b"12".as_slice(), b"eth_getBlockByNumber".as_slice()), "{text}");
            assert_eq!(plain(text), [Param::Word(b"latest"), Param::Truth(false)], "{text}");
        }
        for none in ["[]", "[ ]"] {
            assert_eq!(plain(&PLAIN.replace("[\"latest\",false]", none)), []);
        }
        assert_eq!(plain(&PLAIN.replace("\"latest\",false", "true")), [Param::Truth(true)]);
        assert_eq!(parse(PLAIN.replace("12", "0").as_bytes()).unwrap().id, b"0");
    }

    #[test]
    fn calls_are_read() {
        let text = PLAIN.replace("false", r#"{ "to":"0x01", "data" : "0x" },{}"#);
        let fields = vec![(b"to".as_slice(), b"0x01".as_slice()), (b"data", b"0x")];
        assert_eq!(plain(&text), [Param::Word(b"latest"), Param::Fields(fields), Param::Fields(Vec::new())]);
    }

    #[test]
    fn a_transaction_is_read_to_its_bytes_where_it_is_one() {
        let sent =
            |text: &str| parse(text.as_bytes()).expect("plain").params == Params::Transaction(vec![2, 0xab, 0xff]);
        assert!(sent(SENT));
        assert!(sent(r#"{"params":["0x02abff"],"method":"eth_sendRawTransaction","id":12}"#));
        for other in ["0x02aBf", "0x02aBfg", "0X02aBfF", "02aBfF", ""] {
            assert_eq!(plain(&SENT.replace("0x02aBfF", other)), [Param::Word(other.as_bytes())]);
        }
        assert_eq!(plain(&SENT.replace("Raw", "")), [Param::Word(b"0x02aBfF")]);
        assert_eq!(plain(&SENT.replace("\"]", "\",\"0x\"]")).len(), 2);
    }

    #[test]
    fn everything_else_is_left_to_others() {
        let others = [
            PLAIN.replace("12", "012"),
            PLAIN.replace("12", "-1"),
            PLAIN.replace("12", "1.5"),
            PLAIN.replace("12", "1e3"),
            PLAIN.replace("12", "1234567890123456"),
            PLAIN.replace("12", "\"12\""),
            PLAIN.replace("12", "null"),
            PLAIN.replace("\"id\":12,", ""),
            PLAIN.replace(",\"params\":[\"latest\",false]", ""),
            PLAIN.replace("Block", "\\u0042lock"),
            PLAIN.replace("latest", "late\\u0073t"),
            PLAIN.replace("false", "False"),
            PLAIN.replace("false", "falsely"),
            PLAIN.replace("false", "null"),
            PLAIN.replace("false", "1"),
            PLAIN.replace("false", r#"{"gas":1}"#),
            PLAIN.replace("false", r#"{"to":null}"#),
            PLAIN.replace("false", r#"{"accessList":[]}"#),
            PLAIN.replace("false", r#"{"to":"0x","more":{}}"#),
            PLAIN.replace("false", r#"{"to":"0x",}"#),
            PLAIN.replace("false", r#"{"to""0x"}"#),
            PLAIN.replace("false", r#"{"to":"0x""#),
            PLAIN.replace("false", "{,}"),
            PLAIN.replace("false", "[]"),
            PLAIN.replace("false", ""),
            PLAIN.replace("[\"latest\",false]", "[,]"),
            PLAIN.replace("[\"latest\",false]", "{}"),
            PLAIN.replace("[\"latest\",false]", "\"latest\""),
            PLAIN.replace("\"id\":12", "\"id\":12,\"id\":12"),
            PLAIN.replace("\"id\":12", "\"id\":12,\"other\":1"),
            PLAIN.replace("2.0", "2.\u{e9}"),
            format!("[{PLAIN}]"),
            format!("{PLAIN}x"),
            format!("{PLAIN}{PLAIN}"),
            PLAIN.replace(":12,", ":12,,"),
            PLAIN.replace(']', "],"),
        ];
        for text in others {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        for end in 0..PLAIN.len() {
            assert_eq!(parse(&PLAIN.as_bytes()[..end]), None, "cut off at {end}");
        }
    }
}
