"""The description of the interface, in OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SENTENCE = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
REFUSALS = {
    400: "The body cannot be read, or the request is none",
    401: "The token is missing or wrong",
    408: "The body did not arrive in time",
    413: "The body is too large",
    415: "The content type is another one",
    421: "The request names another host",
    422: "The body is not what it should be",
    429: "Too much waits: come again after Retry-After seconds",
    503: "The server does not take events",
}


def describe_interface(version: str, columns: Sequence[str], token: bool) -> dict[str, object]:
    """Return the description for a model with these columns."""
    row = {
        "type": "object",
        "description": "Fields by name. Those that the model does not know are ignored, missing ones are gaps.",
        "properties": {name: {} for name in columns},
        "additionalProperties": True,
    }
    rows = {
        "type": "object",
        "required": ["rows"],
        "properties": {"rows": {"type": "array", "items": row, "minItems": 1, "maxItems": 10_000}},
    }
    body = {
        "required": True,
        "content": {
            "application/json": {"schema": rows},
            "application/x-ndjson": {"schema": {"type": "string", "description": "One object a line"}},
        },
    }
    answers = {
        "type": "object",
        "required": ["answers"],
        "properties": {"answers": {"type": "array", "items": {"$ref": "#/components/schemas/Answer"}}},
    }
    file = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    taking = (400, 408, 413, 415, 422, 429, 503)
    state = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
    paths = {
        "/events": {"post": _operation("Score events, and learn them if the model learns", _json(answers), taking, body)},
        "/score": {"post": _operation("Score events without learning them", _json(answers), taking, body)},
        "/model": {
            "get": _operation("The file of the model as it is now, without rows as they came", _content(file), (400, 503))
            | {
                "parameters": [
                    {"name": "raw_rows", "in": "query", "schema": {"type": "boolean", "default": False},
                     "description": "Whether the file may hold rows as they came"},
                ]
            }
        },
        "/merge": {
            "post": _operation(
                "Add what another model has learned",
                _json({"type": "object", "required": ["merged"], "properties": {"merged": {"type": "boolean"}}}),
                taking,
                {"required": True, "content": file},
            )
        },
        "/health": {"get": _operation("Whether the process is well", _json(state), (503,))},
        "/ready": {"get": _operation("Whether events are taken", _json(state), (503,))},
        "/metrics": {"get": _operation("Metrics for Prometheus", _content({"text/plain": {"schema": {"type": "string"}}}), ())},
    }  # fmt: skip
    security: dict[str, object] = {"security": [{"token": []}]} if token else {}
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if token else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "headwater", "version": version, "description": "A model beside a stream that never ends."},
        "paths": paths,
        "components": {"schemas": {"Answer": _answer(), "Sentence": SENTENCE}, **schemes},
        **security,
    }


def _answer() -> dict[str, object]:
    number = {"type": ["number", "null"]}
    return {
        "type": "object",
        "properties": {
            "event": {"type": ["integer", "null"], "description": "The number of the event in the stream"},
            "score": {**number, "description": "Log-density: low is odd"},
            "anomaly_score": {**number, "description": "High is odd"},
            "pvalue": {**number, "description": "Share of usual events that are at least as odd"},
            "odd": {"type": ["boolean", "null"]},
            "reasons": {"type": "array", "items": {"type": "object"}},
            "learned": {"type": "boolean"},
            "double": {"type": "boolean"},
            "error": {"type": "string", "description": "What is wrong with the event"},
            "raw": {"type": "string"},
        },
    }


def _json(schema: Mapping[str, object]) -> dict[str, object]:
    return _content({"application/json": {"schema": schema}})


def _content(content: Mapping[str, object]) -> dict[str, object]:
    return {"description": "What was asked for", "content": content}


def _operation(
    about: str, found: Mapping[str, object], refusals: Sequence[int], body: Mapping[str, object] | None = None
) -> dict[str, object]:
    refused = {
        str(status): {
            "description": REFUSALS[status],
            **_json({"$ref": "#/components/schemas/Sentence"}),
        }
        | {"description": REFUSALS[status]}
        for status in sorted({*refusals, 401, 421})
    }
    return {"summary": about, "responses": {"200": found, **refused}, **({} if body is None else {"requestBody": body})}
