//! JSON body of a request.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::document::error_entries::Entry;

pub struct Request {
    pub document: String,
    pub operation: Option<String>,
    /// The variables of the request as JSON text.
    pub variables: Option<String>,
}

impl Request {
    pub fn read(body: &[u8]) -> Result<Self, Vec<Entry>> {
        let broken = |message: String| vec![Entry::validation(message, None)];
        let members: HashMap<String, &RawValue> = serde_json::from_slice(body)
            .map_err(|cause| broken(format!("the request is not a JSON object: {cause}")))?;
        let text = |name: &str| -> Result<Option<String>, Vec<Entry>> {
            match members.get(name).map(|raw| raw.get()) {
                None | Some("null") => Ok(None),
                Some(raw) => {
                    serde_json::from_str(raw).map(Some).map_err(|_| broken(format!("{name}: text is expected")))
                }
            }
        };
        let variables = members.get("variables").map(|raw| raw.get().to_string());
        // some tools send an empty operation name when they mean no name
        let operation = text("operationName")?.filter(|name| !name.is_empty());
        Ok(Request { document: text("query")?.unwrap_or_default(), operation, variables })
    }
}
