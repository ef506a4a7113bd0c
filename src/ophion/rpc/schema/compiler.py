"""Compiles a signature into a function that decodes parameters and calls the handler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.method import Handler, MethodSpec
from ophion.rpc.schema.signature import REQUIRED, Parameter

Invoke: TypeAlias = Callable[[Sequence[Any], Any], Any]
"""Function that takes the `params` array and the caller, and returns a value or an awaitable."""
DecodeParams: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]


def compile_invoke(spec: MethodSpec, context: Any) -> Invoke:
    """Return the fastest function that decodes the parameters of this signature and calls the handler.

    `null` selects a parameter's default, if there is one. Signatures with up to two parameters have a specialised
    function, because a loop over decoders costs about a microsecond. tests/unit/rpc/schema/test_compiler.py compares
    the specialised functions with the general function, `compile_steps`.
    """
    function, parameters = spec.function, spec.signature.parameters
    if spec.signature.takes_caller or spec.exact_count:
        decode_params, call = compile_steps(spec, context)
        return lambda params, caller: call(decode_params(params), caller)
    if not parameters:
        return lambda params, caller: function(context)
    if parameters[0].is_repeated:
        decode = _decoder(parameters[0])
        return lambda params, caller: function(context, *(decode(value) for value in params))
    if len(parameters) == 1:
        return _compile_one(function, context, parameters[0])
    return _compile_more(function, context, parameters)


def compile_steps(spec: MethodSpec, context: Any) -> tuple[DecodeParams, Invoke]:
    """Return two functions: one decodes the parameters, the other calls the handler. Decoding may run in any thread,
    the call only on the event loop.
    """
    function, parameters, takes_caller = spec.function, spec.signature.parameters, spec.signature.takes_caller
    max_count = len(parameters) if spec.exact_count else sys.maxsize

    def decode(params: Sequence[Any]) -> Sequence[Any]:
        if len(params) > max_count:
            raise invalid_params(f"{max_count} parameters are expected")
        if parameters and parameters[0].is_repeated:
            decoder = _decoder(parameters[0])
            return [decoder(value) for value in params]
        return _decoded(parameters, params)

    def call(values: Sequence[Any], caller: Any) -> Any:
        return function(context, caller, *values) if takes_caller else function(context, *values)

    return decode, call


def _compile_one(function: Handler, context: Any, first: Parameter) -> Invoke:
    decode, default = _decoder(first), first.default

    def invoke(params: Sequence[Any], caller: Any) -> Any:
        value = params[0] if params else None
        if value is None:
            if default is REQUIRED:
                raise _missing(first)
            return function(context, default)
        return function(context, decode(value))

    return invoke


def _compile_more(function: Handler, context: Any, parameters: tuple[Parameter, ...]) -> Invoke:
    decode_first, decode_second = _decoder(parameters[0]), _decoder(parameters[1])
    # if the third parameter is optional, decode only two parameters: the handler has defaults for all further
    # parameters
    needs_more = len(parameters) > 2 and parameters[2].default is REQUIRED
    max_count = 2 if len(parameters) > 2 else sys.maxsize

    def invoke(params: Sequence[Any], caller: Any) -> Any:
        if 2 <= len(params) <= max_count and not needs_more:
            first, second = params[0], params[1]
            if first is not None and second is not None:
                return function(context, decode_first(first), decode_second(second))
        return function(context, *_decoded(parameters, params))

    return invoke


def _decoded(parameters: Sequence[Parameter], params: Sequence[Any]) -> list[Any]:
    values = []
    for position, parameter in enumerate(parameters):
        value = params[position] if position < len(params) else None
        if value is not None:
            value = _decoder(parameter)(value)
        elif parameter.default is REQUIRED:
            raise _missing(parameter)
        else:
            value = parameter.default
        values.append(value)
    return values


def _missing(parameter: Parameter) -> Exception:
    return invalid_params(f"{parameter.name}: missing")


def _decoder(parameter: Parameter) -> Callable[[Any], Any]:
    assert parameter.wire.decode is not None
    return parameter.wire.decode
