"""Problems say what was expected, and never what came: it may be a context."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from manyarms.errors import InvalidInput
from manyarms.service.problems import of_error

SECRETS = (
    {"age": "a secret"},
    ["a secret"],
    [98765.4321],
    [[98765.4321]],
    {"a secret": [98765.4321]},
    [98765.4321] * 40,
)


@pytest.mark.parametrize("context", SECRETS)
def test_a_context_that_does_not_fit_is_not_sent_back(client: httpx.Client, context: object) -> None:
    for path, body in (
        ("/v1/decide", {"context": context}),
        ("/v1/decide/batch", {"decisions": [{"context": context}]}),
    ):
        answer = client.post(path, json=body)
        assert "a secret" not in answer.text.replace("context.a secret", "") and "98765" not in answer.text


def test_the_context_is_called_by_the_name_that_requests_have_for_it() -> None:
    status, body, _ = of_error(InvalidInput("x", "a secret", "a vector"))
    assert (status, body["argument"], body["detail"]) == (422, "context", "context: expected a vector")


def test_answers_of_decisions_have_the_form_that_the_description_says(calling: Callable[..., httpx.Client]) -> None:
    paths = calling().get("/openapi.json").json()["paths"]
    for path, name in {
        "/v1/decide": "Answer",
        "/v1/decide/batch": "DecisionAnswers",
        "/v1/reward/batch": "Told",
    }.items():
        content = paths[path]["post"]["responses"]["200"]["content"]
        assert content == {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
