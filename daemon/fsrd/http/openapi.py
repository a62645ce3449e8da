"""The OpenAPI document of the API, made from the table of its endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fsr import __version__
from fsrd.http.endpoints import Endpoint, Fault

MEANINGS = {400: "A field is missing or wrong.", 401: "The token is missing or wrong.", 403: "From another site.",
            404: "There is none.", 409: "Not as things stand.", 413: "Too long.", 415: "No JSON.",
            421: "A host that this service is not.", 503: "Something is wrong."}  # fmt: skip
ALWAYS = (400, 401, 403, 421)
REF = "#/components/schemas/{name}"


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The document, version 3.1. A GET takes its fields as a query, a POST as a JSON body."""
    endpoints = tuple(endpoints)
    types = [kind for e in endpoints for kind in (e.given, e.in_path, e.answer)] + [Fault]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    by_type = {repr(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, by_type, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fsr daemon", "version": __version__, "description": "On the loopback address only."},
        "paths": paths,
        "components": {
            "schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }  # fmt: skip


def _operation(endpoint: Endpoint, by_type: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    def fields(kind: type, place: str) -> list[dict[str, Any]]:
        schema = components[kind.__name__]
        return [
            {"name": name, "in": place, "required": place == "path" or name in schema.get("required", []),
             "schema": {k: v for k, v in field.items() if k != "default"}}
            for name, field in schema["properties"].items()
        ]  # fmt: skip

    def told(status: int) -> dict[str, Any]:
        return {"description": MEANINGS[status], "content": _json(by_type[repr(Fault)])}

    get = endpoint.method == "GET"
    body = not get and bool(components[endpoint.given.__name__]["properties"])
    refusals = {*ALWAYS, *endpoint.refusals, *((413, 415) if body else ())}
    operation: dict[str, Any] = {
        "operationId": endpoint.name, "summary": endpoint.says,
        "parameters": fields(endpoint.in_path, "path") + (fields(endpoint.given, "query") if get else []),
        "responses": {
            "200": {"description": "Done.", "content": _json(by_type[repr(endpoint.answer)])},
            **{str(status): told(status) for status in sorted(refusals)},
        },
    }  # fmt: skip
    if body:
        operation["requestBody"] = {"required": True, "content": _json(by_type[repr(endpoint.given)])}
    return operation


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
