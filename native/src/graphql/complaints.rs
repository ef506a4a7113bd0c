//! Error entries of an answer, and what is said about documents that are not valid (graphql.md 6).

use apollo_compiler::ast::{Definition, Document, Selection};
use apollo_compiler::validation::DiagnosticList;

use super::shape::line_and_column;

/// More errors than this are not listed.
pub const MOST_ERRORS: usize = 50;

/// One entry of `errors`.
#[derive(Debug)]
pub struct Entry {
    pub message: String,
    pub place: Option<(usize, usize)>,
    /// Already JSON.
    pub path: Option<String>,
    pub code: Option<(i64, String)>,
    /// What a reverted call returned, or where a parameter is wrong.
    pub data: Option<String>,
    pub classification: &'static str,
}

impl Entry {
    pub fn validation(message: String, place: Option<(usize, usize)>) -> Self {
        Entry { message, place, path: None, code: None, data: None, classification: "ValidationError" }
    }

    /// A request that is stopped because of what it would cost.
    pub fn aborted(message: String) -> Self {
        Entry { message, place: None, path: None, code: None, data: None, classification: "ExecutionAborted" }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"message\":");
        text(out, &self.message);
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

/// Text as a JSON string.
pub fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(&mut *out, text).expect("writing to memory");
}

/// `"errors":[...]`
pub fn write_errors(out: &mut Vec<u8>, entries: &[Entry]) {
    out.extend_from_slice(b"\"errors\":[");
    for (at, entry) in entries.iter().take(MOST_ERRORS).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        entry.write(out);
    }
    out.push(b']');
}

/// The answer to a request that was not run.
pub fn refusal(entries: &[Entry]) -> Vec<u8> {
    let mut out = vec![b'{'];
    write_errors(&mut out, entries);
    out.push(b'}');
    out
}

/// What is wrong with a document, by the kinds that clients of the original know.
pub fn of_document(found: &DiagnosticList, document: Option<&Document>, source: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for diagnostic in found.iter().take(MOST_ERRORS) {
        let shown = diagnostic.to_json();
        let place = shown.locations.first().map(|location| (location.line, location.column));
        let words = diagnostic.error.to_string();
        let entry = match diagnostic.error.unstable_error_name() {
            None => match words.strip_prefix("syntax error: ") {
                Some(detail) => Entry {
                    message: format!("Invalid Syntax : {detail}"),
                    place,
                    path: None,
                    code: None,
                    data: None,
                    classification: "InvalidSyntax",
                },
                None => Entry::aborted(format!("maximum query size exceeded: {words}")),
            },
            Some("RecursionError" | "RecursionLimitError" | "DeeplyNestedType") => {
                Entry::aborted("maximum query depth exceeded".into())
            }
            Some(name) => {
                let at = place.map_or(0, |(line, column)| offset_of(source, line, column));
                let (path, has_selections) = document.map(|document| path_at(document, at)).unwrap_or_default();
                if name == "MissingSubselection" && has_selections {
                    // It has some, all of them unknown: that is the mistake, and it is listed too.
                    continue;
                }
                let (kind, detail) = kind_and_detail(name, &words, path.last().copied());
                let path = path.join("/");
                Entry::validation(format!("Validation error of type {kind}: {detail} @ '{path}'"), place)
            }
        };
        let is_last = matches!(entry.classification, "InvalidSyntax" | "ExecutionAborted");
        entries.push(entry);
        if is_last {
            break;
        }
    }
    entries
}

fn kind_and_detail(name: &str, words: &str, field: Option<&str>) -> (&'static str, String) {
    let quoted: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
    let nth = |position: usize| quoted.get(position).copied().unwrap_or_default();
    let field = field.unwrap_or_default();
    match name {
        "RequiredArgument" => {
            let argument = nth(0).split_once('(').map_or(nth(0), |(_, rest)| rest.trim_end_matches([')', ':']));
            ("MissingFieldArgument", format!("Missing field argument {argument}"))
        }
        "UndefinedField" => ("FieldUndefined", format!("Field '{}' in type '{}' is undefined", nth(1), nth(0))),
        "UndefinedArgument" => ("UnknownArgument", format!("Unknown field argument {}", nth(0))),
        "MissingSubselection" => ("SubSelectionRequired", format!("Sub selection required for field {field}")),
        "SubselectionOnScalarType" | "SubselectionOnEnumType" => {
            ("SubSelectionNotAllowed", format!("Sub selection not allowed on leaf type {} of field {field}", nth(0)))
        }
        "UndefinedVariable" => ("UndefinedVariable", format!("Undefined variable {}", nth(0).trim_start_matches('$'))),
        "UndefinedDefinition"
        | "UndefinedTypeInNamedFragmentTypeCondition"
        | "UndefinedTypeInInlineFragmentTypeCondition" => ("UnknownType", format!("Unknown type {}", nth(0))),
        "UnsupportedValueType"
        | "IntCoercionError"
        | "FloatCoercionError"
        | "UndefinedInputValue"
        | "UndefinedEnumValue"
        | "RequiredField"
        | "UniqueInputValue" => ("WrongType", words.into()),
        other => (other_kind(other), words.into()),
    }
}

fn other_kind(name: &str) -> &'static str {
    match name {
        "UndefinedFragment" => "UndefinedFragment",
        "UnusedFragment" => "UnusedFragment",
        "RecursiveFragmentDefinition" => "FragmentCycle",
        "UnusedVariable" => "UnusedVariable",
        "ConflictingFieldType" | "ConflictingFieldName" | "ConflictingFieldArgument" => "FieldsConflict",
        "UndefinedDirective" => "UnknownDirective",
        "UnsupportedLocation" => "MisplacedDirective",
        "UniqueArgument" => "DuplicateArgumentNames",
        "UniqueVariable" => "DuplicateVariableName",
        "UniqueDirective" => "DuplicateDirectiveName",
        "DisallowedVariableUsage" => "VariableTypeMismatch",
        "InvalidFragmentTarget" | "InvalidFragmentSpread" => "InvalidFragmentType",
        "AmbiguousAnonymousOperation" => "LoneAnonymousOperationViolation",
        "OperationNameCollision" => "DuplicateOperationName",
        "FragmentNameCollision" => "DuplicateFragmentName",
        "VariableInputType" => "NonInputTypeOnVariable",
        "UndefinedRootOperation" => "UnknownOperation",
        "TypeSystemDefinition" => "NonExecutableDefinition",
        _ => "InvalidDocument",
    }
}

/// The reverse of `line_and_column`.
fn offset_of(source: &str, line: usize, column: usize) -> usize {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &source[start.min(source.len())..];
    start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
}

/// Names that the fields around a place answer to, from the root down; whether the last has selections.
fn path_at(document: &Document, at: usize) -> (Vec<&str>, bool) {
    let mut path = Vec::new();
    let mut has_selections = false;
    for definition in &document.definitions {
        let selections = match definition {
            Definition::OperationDefinition(operation) => &operation.selection_set,
            Definition::FragmentDefinition(fragment) => &fragment.selection_set,
            _ => continue,
        };
        has_selections |= descend(selections, at, &mut path);
    }
    (path, has_selections)
}

fn descend<'d>(mut selections: &'d [Selection], at: usize, path: &mut Vec<&'d str>) -> bool {
    let holds = |span: Option<apollo_compiler::parser::SourceSpan>| {
        span.is_some_and(|span| span.offset() <= at && at < span.end_offset())
    };
    loop {
        let around = selections.iter().find(|selection| holds(selection.location()));
        selections = match around {
            Some(Selection::Field(field)) => {
                path.push(field.response_name().as_str());
                &field.selection_set
            }
            Some(Selection::InlineFragment(inline)) => &inline.selection_set,
            Some(Selection::FragmentSpread(_)) | None => return !path.is_empty() && !selections.is_empty(),
        };
    }
}

/// An error of one field while it is fetched.
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
