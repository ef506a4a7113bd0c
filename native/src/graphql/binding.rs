//! Values for a plan: arguments and variables turned into what the executor works with.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use serde_json::value::RawValue;

use super::kinds::Kind;
use super::plan::{Argument, Plan, Variable, Written};
use super::scalars::{self, Given};
use super::shape::Literal;

/// An argument ready for use.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Long(u64),
    Int(i32),
    Big(U256),
    Address(Address),
    Hash(B256),
    Bytes(Bytes),
    Boolean(bool),
    Text(String),
    Call(Arc<CallArguments>),
    Filter(Arc<FilterArguments>),
    Addresses(Vec<Address>),
    Row(Vec<B256>),
    Topics(Vec<Vec<B256>>),
}

/// CallData of the schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallArguments {
    pub from: Option<Address>,
    pub to: Option<Address>,
    pub gas: Option<u64>,
    pub gas_price: Option<U256>,
    pub max_fee_per_gas: Option<U256>,
    pub max_priority_fee_per_gas: Option<U256>,
    pub value: Option<U256>,
    pub data: Option<Bytes>,
}

/// FilterCriteria and BlockFilterCriteria of the schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterArguments {
    pub from_block: Option<u64>,
    pub to_block: Option<u64>,
    pub addresses: Vec<Address>,
    pub topics: Vec<Vec<B256>>,
}

/// What is wrong with a value, and where.
#[derive(Debug, PartialEq)]
pub struct BadValue {
    pub message: String,
    pub at: usize,
}

/// A value before its type is looked at, whether it comes from the document or from the variables.
enum Source<'a> {
    Null,
    Scalar(Given<'a>),
    Boolean(bool),
    List(Vec<Source<'a>>),
    Object(Vec<(String, Source<'a>)>),
    Ready(&'a Value),
    Other(&'a str),
}

pub struct Texts<'a> {
    pub document: &'a str,
    pub literals: &'a [Literal],
}

type Variables = std::collections::HashMap<String, Box<RawValue>>;

/// JSON text of the variables as its members.
pub fn read_variables(text: Option<&str>) -> Result<Variables, String> {
    match text.map(str::trim) {
        None | Some("" | "null") => Ok(Variables::new()),
        Some(text) => {
            serde_json::from_str(text).map_err(|cause| format!("the variables are not a JSON object: {cause}"))
        }
    }
}

/// Values of the declared variables, in their order.
pub fn variables(plan: &Plan, given: &Variables, texts: &Texts<'_>) -> Result<Vec<Value>, BadValue> {
    let mut values = Vec::with_capacity(plan.variables.len());
    for variable in &plan.variables {
        values.push(variable_value(variable, given, texts)?);
    }
    Ok(values)
}

fn variable_value(variable: &Variable, given: &Variables, texts: &Texts<'_>) -> Result<Value, BadValue> {
    let Variable { name, kind, type_name, at, .. } = variable;
    let value = match given.get(name) {
        Some(raw) => json_source(raw.get())
            .and_then(|source| coerce(*kind, source))
            .map_err(|detail| format!("Variable '{name}' has an invalid value: {detail}")),
        None => written_source(&variable.default, texts, &[]).map_or(Ok(Value::Null), |source| {
            coerce(*kind, source).map_err(|detail| format!("Variable '{name}' has an invalid default value: {detail}"))
        }),
    };
    match value {
        Ok(Value::Null) if variable.is_required => Err(BadValue {
            message: format!("Variable '{name}' has coerced Null value for NonNull type '{type_name}'"),
            at: *at,
        }),
        Ok(value) => Ok(value),
        Err(message) => Err(BadValue { message, at: *at }),
    }
}

/// Values of all arguments of the plan, in their order.
pub fn arguments(plan: &Plan, variables: &[Value], texts: &Texts<'_>) -> Result<Vec<Value>, BadValue> {
    plan.arguments.iter().map(|argument| argument_value(argument, variables, texts)).collect()
}

fn argument_value(argument: &Argument, variables: &[Value], texts: &Texts<'_>) -> Result<Value, BadValue> {
    let Argument { name, kind, type_name, path, at, .. } = argument;
    let wrong = |detail: String| BadValue {
        message: format!(
            "Validation error of type WrongType: argument '{name}' is not a valid '{type_name}': {detail} @ '{path}'"
        ),
        at: *at,
    };
    let value = match written_source(&argument.written, texts, variables) {
        Some(source) => coerce(*kind, source).map_err(wrong)?,
        None => Value::Null,
    };
    if value == Value::Null && argument.is_required {
        return Err(wrong("it must not be null".into()));
    }
    Ok(value)
}

fn written_source<'a>(written: &'a Written, texts: &Texts<'a>, variables: &'a [Value]) -> Option<Source<'a>> {
    Some(match written {
        Written::Absent => return None,
        Written::Null => Source::Null,
        Written::Boolean(value) => Source::Boolean(*value),
        Written::NumberAt(position) => Source::Scalar(Given::Number(texts.literals[*position].of(texts.document))),
        Written::TextAt(position) => Source::Scalar(Given::Text(texts.literals[*position].of(texts.document))),
        Written::Number(digits) => Source::Scalar(Given::Number(digits)),
        Written::Text(text) => Source::Scalar(Given::Text(text)),
        Written::Variable(position) => Source::Ready(variables.get(*position)?),
        Written::List(items) => Source::List(
            items.iter().map(|item| written_source(item, texts, variables).unwrap_or(Source::Null)).collect(),
        ),
        Written::Object(members) => Source::Object(
            members
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), written_source(value, texts, variables)?)))
                .collect(),
        ),
        Written::Other(text) => Source::Other(text),
    })
}

/// JSON as a source. Numbers stay text, so that none loses digits.
fn json_source(text: &str) -> Result<Source<'_>, String> {
    let text = text.trim();
    let broken = |cause: serde_json::Error| cause.to_string();
    Ok(match text.as_bytes().first() {
        Some(b'n') => Source::Null,
        Some(b't') => Source::Boolean(true),
        Some(b'f') => Source::Boolean(false),
        Some(b'"') => match &text[1..text.len() - 1] {
            plain if !plain.contains('\\') => Source::Scalar(Given::Text(plain)),
            _ => Source::Other(text),
        },
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
            Source::List(items.into_iter().map(|item| json_source(item.get())).collect::<Result<_, _>>()?)
        }
        Some(b'{') => {
            let members: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(broken)?;
            let members = members.into_iter().map(|(name, value)| Ok((name, json_source(value.get())?)));
            Source::Object(members.collect::<Result<_, String>>()?)
        }
        _ => Source::Scalar(Given::Number(text)),
    })
}

fn coerce(kind: Kind, source: Source<'_>) -> Result<Value, String> {
    match source {
        Source::Null => return Ok(Value::Null),
        // The document has been checked: a variable fits where it stands, or is one item of a list.
        Source::Ready(value) => return Ok(as_kind(kind, value.clone())),
        _ => {}
    }
    match kind {
        Kind::CallData => call_arguments(source).map(|call| Value::Call(Arc::new(call))),
        Kind::Filter => filter_arguments(source).map(|filter| Value::Filter(Arc::new(filter))),
        Kind::Addresses => items(source, Kind::Address, |value| match value {
            Value::Address(address) => Some(address),
            _ => None,
        })
        .map(Value::Addresses),
        Kind::TopicRow => row(source).map(Value::Row),
        Kind::Topics => items(source, Kind::TopicRow, |value| match value {
            Value::Row(row) => Some(row),
            _ => None,
        })
        .map(Value::Topics),
        Kind::Boolean => match source {
            Source::Boolean(value) => Ok(Value::Boolean(value)),
            other => Err(unfit(&other)),
        },
        Kind::Unused => Ok(Value::Null),
        _ => scalar(kind, &source),
    }
}

fn scalar(kind: Kind, source: &Source<'_>) -> Result<Value, String> {
    let Source::Scalar(given) = source else {
        return match (kind, source) {
            (Kind::Text, Source::Other(text)) => Ok(Value::Text((*text).into())),
            _ => Err(unfit(source)),
        };
    };
    let value = match kind {
        Kind::Long => scalars::long(*given).map(Value::Long),
        Kind::Int => scalars::int(*given).map(Value::Int),
        Kind::BigInt => scalars::big_int(*given).map(Value::Big),
        Kind::Address => scalars::address(*given).map(Value::Address),
        Kind::Bytes => scalars::bytes(*given).map(Value::Bytes),
        Kind::Bytes32 => scalars::bytes32(*given).map(Value::Hash),
        _ => match given {
            Given::Text(text) | Given::Number(text) => Some(Value::Text((*text).into())),
        },
    };
    value.ok_or_else(|| unfit(source))
}

/// A single item stands for a list of one.
fn as_kind(kind: Kind, value: Value) -> Value {
    match (kind, value) {
        (Kind::Addresses, Value::Address(address)) => Value::Addresses(vec![address]),
        (Kind::TopicRow, Value::Hash(hash)) => Value::Row(vec![hash]),
        (Kind::Topics, Value::Hash(hash)) => Value::Topics(vec![vec![hash]]),
        (Kind::Topics, Value::Row(row)) => Value::Topics(vec![row]),
        (_, value) => value,
    }
}

fn row(source: Source<'_>) -> Result<Vec<B256>, String> {
    items(source, Kind::Bytes32, |value| match value {
        Value::Hash(hash) => Some(hash),
        _ => None,
    })
}

fn items<T>(source: Source<'_>, kind: Kind, take: impl Fn(Value) -> Option<T>) -> Result<Vec<T>, String> {
    let items = match source {
        Source::List(items) => items,
        one => vec![one],
    };
    let one = |item| take(coerce(kind, item)?).ok_or_else(|| "an item must not be null".to_string());
    items.into_iter().map(one).collect()
}

fn unfit(source: &Source<'_>) -> String {
    match source {
        Source::Scalar(Given::Text(text)) => format!("'{}'", shortened(text)),
        Source::Scalar(Given::Number(digits)) => shortened(digits),
        Source::Boolean(value) => value.to_string(),
        Source::Other(text) => shortened(text),
        Source::List(_) => "a list".into(),
        Source::Object(_) => "an object".into(),
        Source::Null | Source::Ready(_) => "null".into(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

fn members(source: Source<'_>) -> Result<Vec<(String, Source<'_>)>, String> {
    match source {
        Source::Object(members) => Ok(members),
        other => Err(unfit(&other)),
    }
}

fn call_arguments(source: Source<'_>) -> Result<CallArguments, String> {
    let mut call = CallArguments::default();
    for (name, value) in members(source)? {
        let kind = match name.as_str() {
            "from" | "to" => Kind::Address,
            "gas" => Kind::Long,
            "gasPrice" | "maxFeePerGas" | "maxPriorityFeePerGas" | "value" => Kind::BigInt,
            "data" => Kind::Bytes,
            _ => return Err(format!("there is no member '{}'", shortened(&name))),
        };
        let value = coerce(kind, value).map_err(|detail| format!("{name}: {detail}"))?;
        match (name.as_str(), value) {
            ("from", Value::Address(address)) => call.from = Some(address),
            ("to", Value::Address(address)) => call.to = Some(address),
            ("gas", Value::Long(gas)) => call.gas = Some(gas),
            ("gasPrice", Value::Big(price)) => call.gas_price = Some(price),
            ("maxFeePerGas", Value::Big(price)) => call.max_fee_per_gas = Some(price),
            ("maxPriorityFeePerGas", Value::Big(price)) => call.max_priority_fee_per_gas = Some(price),
            ("value", Value::Big(wei)) => call.value = Some(wei),
            ("data", Value::Bytes(data)) => call.data = Some(data),
            _ => {}
        }
    }
    Ok(call)
}

fn filter_arguments(source: Source<'_>) -> Result<FilterArguments, String> {
    let mut filter = FilterArguments::default();
    for (name, value) in members(source)? {
        let kind = match name.as_str() {
            "fromBlock" | "toBlock" => Kind::Long,
            "addresses" => Kind::Addresses,
            "topics" => Kind::Topics,
            _ => return Err(format!("there is no member '{}'", shortened(&name))),
        };
        let value = coerce(kind, value).map_err(|detail| format!("{name}: {detail}"))?;
        match (name.as_str(), value) {
            ("fromBlock", Value::Long(number)) => filter.from_block = Some(number),
            ("toBlock", Value::Long(number)) => filter.to_block = Some(number),
            ("addresses", Value::Addresses(addresses)) => filter.addresses = addresses,
            ("topics", Value::Topics(topics)) => filter.topics = topics,
            _ => {}
        }
    }
    Ok(filter)
}
