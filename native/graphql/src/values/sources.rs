//! Untyped values of arguments: literals of the document, or JSON text of variables.

use std::collections::{BTreeMap, HashMap};

use apollo_compiler::ast::Value as Ast;
use serde_json::value::RawValue;

use super::scalars::Given;
use super::value::Value;
use crate::document::kinds::Kind;
use crate::document::plan::Written;
use crate::document::shape::Literal;

/// Maximum number of variables in a request, and of values in one variable.
const MAX_VARIABLES: usize = 1_000;
const MAX_VALUES: usize = 10_000;
/// Maximum nesting of a variable; the schema needs four levels.
const MAX_DEPTH: usize = 16;
/// Maximum length of a value in an error text.
const MAX_SHOWN_LENGTH: usize = 256;

/// A value of an argument or variable, as the request contains it.
pub enum Source<'a> {
    Null,
    Scalar(Given<'a>),
    /// Text of a JSON variable, after its escapes are resolved.
    Unescaped(String),
    Boolean(bool),
    List(Vec<Source<'a>>),
    Object(Vec<(String, Source<'a>)>),
    /// The value of a variable that was already converted to its declared type.
    Ready(&'a Value),
    Enum(&'a str),
    Fraction(&'a str),
}

pub struct Texts<'a> {
    pub document: &'a str,
    pub literals: &'a [Literal],
}

/// The variables of a request, or the fields of one variable that is an object.
pub type Variables<'a> = HashMap<String, &'a RawValue>;

/// Parse the JSON text of variables.
pub fn read_variables(text: Option<&str>) -> Result<Variables<'_>, String> {
    match text.map(str::trim) {
        None | Some("" | "null") => Ok(Variables::new()),
        Some(text) => {
            let read: Result<Variables<'_>, _> = serde_json::from_str(text);
            let read = read.map_err(|cause| format!("the variables are not a JSON object: {cause}"))?;
            if read.len() > MAX_VARIABLES { Err(format!("more than {MAX_VARIABLES} variables")) } else { Ok(read) }
        }
    }
}

/// Reason why a value does not have the type that the schema requires.
#[derive(Debug, PartialEq)]
pub struct Unfit {
    /// Path from the argument or variable to the invalid value inside it: `.to`, `[0]`.
    pub path: String,
    /// The invalid value in document notation.
    pub literal: String,
    /// The invalid value in JSON notation.
    pub plain: String,
    pub complaint: String,
}

impl Unfit {
    pub fn new(source: &Source<'_>, complaint: String) -> Self {
        let mut literal = String::new();
        source.write_literal(&mut literal);
        Unfit { path: String::new(), literal: shortened(&literal), plain: source.plain(), complaint }
    }

    pub fn of_kind(source: &Source<'_>, kind: Kind) -> Self {
        Self::new(source, format!("is not a valid '{}'", kind.name()))
    }

    pub fn inside(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

impl<'a> Source<'a> {
    /// Convert an argument of the plan to a `Source`; None if the argument or its variable is absent.
    pub fn of_written(written: &'a Written, texts: &Texts<'a>, variables: &'a [Value]) -> Option<Self> {
        let inner = |one: &'a Written| Self::of_written(one, texts, variables);
        Some(match written {
            Written::Absent => return None,
            Written::Null => Source::Null,
            Written::Boolean(value) => Source::Boolean(*value),
            Written::NumberAt(position) => Source::Scalar(Given::Number(texts.literals[*position].of(texts.document))),
            Written::TextAt(position) => Source::Scalar(Given::Text(texts.literals[*position].of(texts.document))),
            Written::Number(digits) => Source::Scalar(Given::Number(digits)),
            Written::Text(text) => Source::Scalar(Given::Text(text)),
            Written::Variable(position) => Source::Ready(variables.get(*position)?),
            Written::List(items) => Source::List(items.iter().map(|one| inner(one).unwrap_or(Source::Null)).collect()),
            Written::Object(members) => {
                Source::Object(members.iter().filter_map(|(name, one)| Some((name.clone(), inner(one)?))).collect())
            }
            Written::Enum(name) => Source::Enum(name),
            Written::Fraction(digits) => Source::Fraction(digits),
        })
    }

    /// Parse JSON. Numbers stay text, so that all digits are preserved.
    pub fn of_json(text: &'a str) -> Result<Self, String> {
        let mut values = MAX_VALUES;
        Self::of_json_inside(text, MAX_DEPTH, &mut values)
    }

    fn of_json_inside(text: &'a str, levels: usize, values: &mut usize) -> Result<Self, String> {
        let text = text.trim();
        let broken = |cause: serde_json::Error| cause.to_string();
        let mut inside = |count: usize| match (levels.checked_sub(1), values.checked_sub(count)) {
            (None, _) => Err(format!("it has more than {MAX_DEPTH} levels")),
            (_, None) => Err(format!("it has more than {MAX_VALUES} values")),
            (Some(levels), Some(left)) => {
                *values = left;
                Ok(levels)
            }
        };
        Ok(match text.as_bytes().first() {
            Some(b'n') => Source::Null,
            Some(b't') => Source::Boolean(true),
            Some(b'f') => Source::Boolean(false),
            Some(b'"') => match &text[1..text.len() - 1] {
                plain if !plain.contains('\\') => Source::Scalar(Given::Text(plain)),
                _ => Source::Unescaped(serde_json::from_str(text).map_err(broken)?),
            },
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
                let levels = inside(items.len())?;
                let items = items.into_iter().map(|item| Self::of_json_inside(item.get(), levels, values));
                Source::List(items.collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(broken)?;
                let levels = inside(members.len())?;
                let members = members
                    .into_iter()
                    .map(|(name, value)| Ok((name, Self::of_json_inside(value.get(), levels, values)?)));
                Source::Object(members.collect::<Result<_, String>>()?)
            }
            _ => Source::Scalar(Given::Number(text)),
        })
    }

    /// Wrap an invalid value of a document, so that an error text can show it.
    pub fn of_ast(value: &'a Ast) -> Self {
        match value {
            Ast::Null => Source::Null,
            Ast::Enum(name) => Source::Enum(name.as_str()),
            Ast::Variable(name) => Source::Enum(name.as_str()),
            Ast::String(text) => Source::Scalar(Given::Text(text)),
            Ast::Float(digits) => Source::Fraction(digits.as_str()),
            Ast::Int(digits) => Source::Scalar(Given::Number(digits.as_str())),
            Ast::Boolean(value) => Source::Boolean(*value),
            Ast::List(items) => Source::List(items.iter().map(|item| Self::of_ast(item)).collect()),
            Ast::Object(members) => {
                Source::Object(members.iter().map(|(name, value)| (name.to_string(), Self::of_ast(value))).collect())
            }
        }
    }

    /// Append the value in the notation that Besu uses for document values.
    fn write_literal(&self, out: &mut String) {
        match self {
            Source::Null | Source::Ready(_) => out.push_str("NullValue{}"),
            Source::Scalar(Given::Number(digits)) => out.push_str(&format!("IntValue{{value={digits}}}")),
            Source::Scalar(Given::Text(text)) => out.push_str(&format!("StringValue{{value='{text}'}}")),
            Source::Unescaped(text) => out.push_str(&format!("StringValue{{value='{text}'}}")),
            Source::Boolean(value) => out.push_str(&format!("BooleanValue{{value={value}}}")),
            Source::Enum(name) => out.push_str(&format!("EnumValue{{name='{name}'}}")),
            Source::Fraction(digits) => out.push_str(&format!("FloatValue{{value={digits}}}")),
            Source::List(items) => {
                out.push_str("ArrayValue{values=[");
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    item.write_literal(out);
                }
                out.push_str("]}");
            }
            Source::Object(members) => {
                out.push_str("ObjectValue{objectFields=[");
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    out.push_str(&format!("ObjectField{{name='{name}', value="));
                    value.write_literal(out);
                    out.push('}');
                }
                out.push_str("]}");
            }
        }
    }

    fn plain(&self) -> String {
        match self {
            Source::Scalar(Given::Text(text)) => format!("'{}'", shortened(text)),
            Source::Unescaped(text) => format!("'{}'", shortened(text)),
            Source::Scalar(Given::Number(digits)) => shortened(digits),
            Source::Boolean(value) => value.to_string(),
            Source::Enum(text) | Source::Fraction(text) => shortened(text),
            Source::List(_) => "a list".into(),
            Source::Object(_) => "an object".into(),
            Source::Null | Source::Ready(_) => "null".into(),
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_LENGTH) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}
