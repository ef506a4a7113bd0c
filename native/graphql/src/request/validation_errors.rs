//! Error texts of invalid documents, by the error kinds of Besu (graphql.md 6).

use apollo_compiler::Node as Shared;
use apollo_compiler::ast::{Argument, Definition, Document, Selection, Value as Ast};
use apollo_compiler::parser::SourceSpan;
use apollo_compiler::validation::DiagnosticList;

use crate::document::error_entries::{Entry, MAX_ERRORS};
use crate::document::shape::line_and_column;
use crate::values::sources::{Source, Unfit};

/// Return the error entries of an invalid document.
pub fn errors_of(found: &DiagnosticList, document: Option<&Document>, source: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let has_unknown_type = found.iter().any(|one| one.error.unstable_error_name() == Some("UndefinedDefinition"));
    for diagnostic in found.iter() {
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
            // skip this error: the unknown type of a variable is reported already, and causes this error at each use
            Some("DisallowedVariableUsage") if has_unknown_type => continue,
            Some(name) => match of_rule(name, &words, place, document, source) {
                Some(entry) => entry,
                None => continue,
            },
        };
        let is_last = matches!(entry.classification, "InvalidSyntax" | "ExecutionAborted");
        entries.push(entry);
        if is_last || entries.len() >= MAX_ERRORS {
            break;
        }
    }
    entries
}

/// Return the error entry for a broken validation rule; None if another entry covers the same mistake.
fn of_rule(
    name: &str,
    words: &str,
    place: Option<(usize, usize)>,
    document: Option<&Document>,
    source: &str,
) -> Option<Entry> {
    let at = place.map_or(0, |(line, column)| offset_of(source, line, column));
    let around = document.map(|document| Around::of(document, at)).unwrap_or_default();
    let path = around.path.join("/");
    let quoted: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
    let nth = |position: usize| quoted.get(position).copied().unwrap_or_default();
    let field = around.path.last().copied().unwrap_or_default();
    let (kind, detail) = match name {
        // skip this error: all selections of the field are unknown, and the unknown selections are reported already
        "MissingSubselection" if around.has_selections => return None,
        "RequiredArgument" => {
            let argument = nth(0).split_once('(').map_or(nth(0), |(_, rest)| rest.trim_end_matches([')', ':']));
            if source[at..].starts_with('@') {
                ("MissingDirectiveArgument", format!("Missing directive argument {argument}"))
            } else if around.arguments.iter().any(|given| given.name == argument) {
                return None; // the argument is present, but its value is null
            } else {
                ("MissingFieldArgument", format!("Missing field argument {argument}"))
            }
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
        | "UniqueInputValue" => {
            let Some(argument) = around.argument else {
                return Some(Entry::validation(
                    format!("Validation error of type WrongType: {words} @ '{path}'"),
                    place,
                ));
            };
            let start = argument.location().map_or(at, |span| span.offset());
            let detail = refused_value(argument, at, name, words, &quoted);
            let message = format!("Validation error of type WrongType: {detail} @ '{path}'");
            return Some(Entry::validation(message, Some(line_and_column(source, start))));
        }
        other => (other_kind(other), words.into()),
    };
    Some(Entry::validation(format!("Validation error of type {kind}: {detail} @ '{path}'"), place))
}

/// Describe the invalid part of an argument in the wording of Besu.
fn refused_value(argument: &Argument, at: usize, name: &str, words: &str, quoted: &[&str]) -> String {
    let mut path = argument.name.to_string();
    let mut value = &argument.value;
    loop {
        let inner = match &**value {
            // an undefined input field is reported with the path of the whole argument
            _ if name == "UndefinedInputValue" => None,
            Ast::List(items) => {
                items.iter().enumerate().find(|(_, item)| holds(item.location(), at)).map(|(position, item)| {
                    path.push_str(&format!("[{position}]"));
                    item
                })
            }
            Ast::Object(members) => {
                members.iter().find(|(_, value)| holds(value.location(), at)).map(|(name, value)| {
                    path.push_str(&format!(".{name}"));
                    value
                })
            }
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => break,
        }
    }
    let expected = words.strip_prefix("expected value of type ").and_then(|rest| rest.split(',').next());
    let complaint = match (name, &**value, expected) {
        ("UndefinedInputValue", ..) => {
            let nth = |position: usize| quoted.get(position).copied().unwrap_or_default();
            format!("contains a field not in '{}': '{}'", nth(1), nth(0))
        }
        (_, Ast::Null, _) => "must not be null".into(),
        (.., Some(expected)) => match expected.trim_matches(['[', ']', '!']) {
            "CallData" | "FilterCriteria" | "BlockFilterCriteria" => "must be an object type".into(),
            expected => format!("is not a valid '{expected}'"),
        },
        ("IntCoercionError", ..) => "is not a valid 'Int'".into(),
        _ => words.into(),
    };
    let shown = Unfit::new(&Source::of_ast(value), complaint);
    format!("argument '{path}' with value '{}' {}", shown.literal, shown.complaint)
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

/// Return the offset of a line and a column, the inverse of `line_and_column`.
fn offset_of(source: &str, line: usize, column: usize) -> usize {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &source[start.min(source.len())..];
    start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
}

fn holds(span: Option<SourceSpan>, at: usize) -> bool {
    span.is_some_and(|span| span.offset() <= at && at < span.end_offset())
}

/// The fields and arguments around a position in a document.
#[derive(Default)]
struct Around<'d> {
    /// Response keys from the root to this position.
    path: Vec<&'d str>,
    /// Whether the innermost field that contains this position has selections.
    has_selections: bool,
    /// Arguments of the innermost field that contains this position.
    arguments: &'d [Shared<Argument>],
    /// The argument that contains this position.
    argument: Option<&'d Shared<Argument>>,
}

impl<'d> Around<'d> {
    fn of(document: &'d Document, at: usize) -> Self {
        let mut around = Around::default();
        for definition in &document.definitions {
            match definition {
                Definition::OperationDefinition(operation) => around.descend(&operation.selection_set, at),
                Definition::FragmentDefinition(fragment) => around.descend(&fragment.selection_set, at),
                _ => {}
            }
        }
        around
    }

    fn descend(&mut self, mut selections: &'d [Selection], at: usize) {
        while let Some(found) = selections.iter().find(|selection| holds(selection.location(), at)) {
            let directives = match found {
                Selection::Field(field) => {
                    self.path.push(field.response_name().as_str());
                    self.arguments = &field.arguments;
                    selections = &field.selection_set;
                    &field.directives
                }
                Selection::InlineFragment(inline) => {
                    selections = &inline.selection_set;
                    &inline.directives
                }
                Selection::FragmentSpread(spread) => {
                    selections = &[];
                    &spread.directives
                }
            };
            let all = self.arguments.iter().chain(directives.iter().flat_map(|directive| &directive.arguments));
            self.argument = all.into_iter().find(|argument| holds(argument.location(), at)).or(self.argument);
            self.has_selections = !self.path.is_empty() && !selections.is_empty();
        }
    }
}
