//! Error entries of a response (graphql.md 6).

use super::shape::line_and_column;

/// Maximum number of errors that a response lists.
pub const MAX_ERRORS: usize = 50;
const MAX_MESSAGE_LENGTH: usize = 1_000;

/// One entry of `errors` in a GraphQL response.
#[derive(Debug)]
pub struct Entry {
    pub message: String,
    pub place: Option<(usize, usize)>,
    /// Path of the failed field as JSON text.
    pub path: Option<String>,
    pub code: Option<(i64, String)>,
    /// Output of a reverted call, or the position of a wrong parameter.
    pub data: Option<String>,
    pub classification: &'static str,
}

impl Entry {
    pub fn validation(message: String, place: Option<(usize, usize)>) -> Self {
        Entry { message, place, path: None, code: None, data: None, classification: "ValidationError" }
    }

    /// Return the error entry of a request that is rejected because of its cost.
    pub fn aborted(message: String) -> Self {
        Entry { message, place: None, path: None, code: None, data: None, classification: "ExecutionAborted" }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"message\":");
        // Truncate the message: a name in the request may have megabytes, and each of many errors may repeat the name.
        match self.message.char_indices().nth(MAX_MESSAGE_LENGTH) {
            Some((end, _)) => text(out, &format!("{}...", &self.message[..end])),
            None => text(out, &self.message),
        }
        if let Some((line, column)) = self.place {
            out.extend_from_slice(format!(",\"locations\":[{{\"line\":{line},\"column\":{column}}}]").as_bytes());
        }
        if let Some(path) = &self.path {
            out.extend_from_slice(b",\"path\":");
            out.extend_from_slice(path.as_bytes());
        }
        out.extend_from_slice(b",\"extensions\":{");
        if let Some((code, message)) = &self.code {
            out.extend_from_slice(format!("\"errorCode\":{code},\"errorMessage\":").as_bytes());
            text(out, message);
            out.push(b',');
        }
        if let Some(data) = &self.data {
            out.extend_from_slice(b"\"data\":");
            text(out, data);
            out.push(b',');
        }
        out.extend_from_slice(format!("\"classification\":\"{}\"}}}}", self.classification).as_bytes());
    }
}

/// Append text as a JSON string.
pub fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(&mut *out, text).expect("writing to memory");
}

/// Append the key `"errors":[...]` to the JSON response.
pub fn write_errors(out: &mut Vec<u8>, entries: &[Entry]) {
    out.extend_from_slice(b"\"errors\":[");
    for (at, entry) in entries.iter().take(MAX_ERRORS).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        entry.write(out);
    }
    out.push(b']');
}

/// Return the response to a request that was not run.
pub fn refusal(entries: &[Entry]) -> Vec<u8> {
    let mut out = vec![b'{'];
    write_errors(&mut out, entries);
    out.push(b'}');
    out
}

/// Return the error entry of a field that failed during execution.
pub fn fetching(path: String, shown_path: &str, detail: &str, document: &str, at: usize) -> Entry {
    Entry {
        message: format!("Exception while fetching data ({shown_path}) : {detail}"),
        place: Some(line_and_column(document, at)),
        path: Some(path),
        code: None,
        data: None,
        classification: "DataFetchingException",
    }
}
