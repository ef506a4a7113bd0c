//! Binds arguments and variables to a plan.

use std::sync::Arc;

use alloy_primitives::B256;

use super::scalars::{self, Given};
use super::sources::{Source, Texts, Unfit, Variables};
use super::value::{CallArguments, FilterArguments, Value};
use crate::document::kinds::Kind;
use crate::document::plan::{Argument, Plan, Variable};

/// An invalid argument or variable value, and its position in the document.
#[derive(Debug, PartialEq)]
pub struct BadValue {
    pub message: String,
    pub at: usize,
}

/// Return the values of the declared variables, in order.
pub fn variables(plan: &Plan, given: &Variables<'_>, texts: &Texts<'_>) -> Result<Vec<Value>, BadValue> {
    let mut values = Vec::with_capacity(plan.variables.len());
    for variable in &plan.variables {
        values.push(variable_value(variable, given, texts)?);
    }
    Ok(values)
}

fn variable_value(variable: &Variable, given: &Variables<'_>, texts: &Texts<'_>) -> Result<Value, BadValue> {
    let Variable { name, kind, type_name, at, .. } = variable;
    let wrong = |source: &str, unfit: Unfit| {
        let Unfit { path, plain, complaint, .. } = unfit;
        format!("Variable '{name}{path}' has an invalid {source}: {plain} {complaint}")
    };
    let value = match given.get(name) {
        Some(raw) => Source::of_json(raw.get())
            .map_err(|cause| format!("Variable '{name}' has an invalid value: {cause}"))
            .and_then(|source| coerce(*kind, source).map_err(|unfit| wrong("value", unfit))),
        None => Source::of_written(&variable.default, texts, &[])
            .map_or(Ok(Value::Null), |source| coerce(*kind, source).map_err(|unfit| wrong("default value", unfit))),
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

/// Return the values of all arguments of the plan, in order.
pub fn arguments(plan: &Plan, variables: &[Value], texts: &Texts<'_>) -> Result<Vec<Value>, BadValue> {
    plan.arguments.iter().map(|argument| argument_value(argument, variables, texts)).collect()
}

fn argument_value(argument: &Argument, variables: &[Value], texts: &Texts<'_>) -> Result<Value, BadValue> {
    let Argument { name, kind, path, at, .. } = argument;
    let wrong = |unfit: Unfit| BadValue {
        message: format!(
            "Validation error of type WrongType: argument '{name}{}' with value '{}' {} @ '{path}'",
            unfit.path, unfit.literal, unfit.complaint
        ),
        at: *at,
    };
    let value = match Source::of_written(&argument.written, texts, variables) {
        Some(source) => coerce(*kind, source).map_err(wrong)?,
        None => Value::Null,
    };
    if value == Value::Null && argument.is_required {
        return Err(wrong(not_null()));
    }
    Ok(value)
}

fn not_null() -> Unfit {
    Unfit::new(&Source::Null, "must not be null".into())
}

fn coerce(kind: Kind, source: Source<'_>) -> Result<Value, Unfit> {
    match source {
        Source::Null => return Ok(Value::Null),
        // Validation guarantees that the value has the expected type, or is a single item where a list is expected.
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
            other => Err(Unfit::of_kind(&other, kind)),
        },
        Kind::Unused => Ok(Value::Null),
        _ => scalar(kind, &source),
    }
}

fn scalar(kind: Kind, source: &Source<'_>) -> Result<Value, Unfit> {
    let given = match source {
        Source::Scalar(given) => *given,
        Source::Unescaped(text) => Given::Text(text),
        _ => return Err(Unfit::of_kind(source, kind)),
    };
    let value = match kind {
        Kind::Long => scalars::long(given).map(Value::Long),
        Kind::Int => scalars::int(given).map(Value::Int),
        Kind::BigInt => scalars::big_int(given).map(Value::Big),
        Kind::Address => scalars::address(given).map(Value::Address),
        Kind::Bytes => scalars::bytes(given).map(Value::Bytes),
        Kind::Bytes32 => scalars::bytes32(given).map(Value::Hash),
        _ => match given {
            Given::Text(text) | Given::Number(text) => Some(Value::Text(text.into())),
        },
    };
    value.ok_or_else(|| Unfit::of_kind(source, kind))
}

/// Convert a single item to a list with one item, if a list is expected.
fn as_kind(kind: Kind, value: Value) -> Value {
    match (kind, value) {
        (Kind::Addresses, Value::Address(address)) => Value::Addresses(vec![address]),
        (Kind::TopicRow, Value::Hash(hash)) => Value::Row(vec![hash]),
        (Kind::Topics, Value::Hash(hash)) => Value::Topics(vec![vec![hash]]),
        (Kind::Topics, Value::Row(row)) => Value::Topics(vec![row]),
        (_, value) => value,
    }
}

fn row(source: Source<'_>) -> Result<Vec<B256>, Unfit> {
    items(source, Kind::Bytes32, |value| match value {
        Value::Hash(hash) => Some(hash),
        _ => None,
    })
}

fn items<T>(source: Source<'_>, kind: Kind, take: impl Fn(Value) -> Option<T>) -> Result<Vec<T>, Unfit> {
    let one = |item| take(coerce(kind, item)?).ok_or_else(not_null);
    match source {
        Source::List(items) => {
            let items = items.into_iter().enumerate();
            items.map(|(at, item)| one(item).map_err(|unfit| unfit.inside(&format!("[{at}]")))).collect()
        }
        single => Ok(vec![one(single)?]),
    }
}

fn members(source: Source<'_>) -> Result<Vec<(String, Source<'_>)>, Unfit> {
    match source {
        Source::Object(members) => Ok(members),
        other => Err(Unfit::new(&other, "must be an object type".into())),
    }
}

fn unknown_member(type_name: &str, name: String, value: Source<'_>) -> Unfit {
    let complaint = format!("contains a field not in '{type_name}': '{name}'");
    Unfit::new(&Source::Object(vec![(name, value)]), complaint)
}

fn call_arguments(source: Source<'_>) -> Result<CallArguments, Unfit> {
    let mut call = CallArguments::default();
    for (name, value) in members(source)? {
        let kind = match name.as_str() {
            "from" | "to" => Kind::Address,
            "gas" => Kind::Long,
            "gasPrice" | "maxFeePerGas" | "maxPriorityFeePerGas" | "value" => Kind::BigInt,
            "data" => Kind::Bytes,
            _ => return Err(unknown_member("CallData", name, value)),
        };
        let value = coerce(kind, value).map_err(|unfit| unfit.inside(&format!(".{name}")))?;
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

fn filter_arguments(source: Source<'_>) -> Result<FilterArguments, Unfit> {
    let mut filter = FilterArguments::default();
    for (name, value) in members(source)? {
        let kind = match name.as_str() {
            "fromBlock" | "toBlock" => Kind::Long,
            "addresses" => Kind::Addresses,
            "topics" => Kind::Topics,
            _ => return Err(unknown_member("FilterCriteria", name, value)),
        };
        let value = coerce(kind, value).map_err(|unfit| unfit.inside(&format!(".{name}")))?;
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
