"""How each known client is pointed at Warmline. ``docs/clients.md`` shows the same, word for word;
tests/clients runs real clients with it."""

from __future__ import annotations

from dataclasses import dataclass

URL = "%URL%"
"""Stands for the base URL, such as ``http://127.0.0.1:8787/v1``."""
TOKEN = "WARMLINE_TOKEN"  # noqa: S105  (the name of a variable)
"""The variable that holds the ``gateway_token`` where one is set: no text ever holds the token."""


_RESPONSES = (
    "Only what goes to the Responses API is continued and recorded; Chat Completions pass through "
    "as they are."
)


@dataclass(frozen=True, slots=True)
class Snippet:
    place: str
    """Where it goes."""
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    title: str
    snippets: tuple[Snippet, ...]
    note: str


def clients(*, token: bool) -> tuple[Client, ...]:
    """All clients; ``token``: the server wants ``x-warmline-token``."""
    return (
        _codex(token),
        _python(token),
        _javascript(token),
        _agents(token),
        _pi(token),
        _opencode(token),
        _lingtai(token),
    )


def _codex(token: bool) -> Client:
    header = f'\nenv_http_headers = {{ "x-warmline-token" = "{TOKEN}" }}' if token else ""
    text = f"""model_provider = "warmline"

[model_providers.warmline]
name = "Warmline"
base_url = "{URL}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
supports_websockets = true{header}
"""
    return Client(
        "codex",
        "Codex",
        (Snippet("~/.codex/config.toml", "toml", text),),
        "model_provider stands above the first table of the file. With a ChatGPT login: "
        "requires_openai_auth = true in place of env_key, and an upstream at "
        "https://chatgpt.com/backend-api/codex.",
    )


def _python(token: bool) -> Client:
    given = f'base_url="{URL}"'
    if token:
        header = f'default_headers={{"x-warmline-token": os.environ["{TOKEN}"]}}'
        given = f"\n    {given},\n    {header},\n"
    code = f"""from openai import OpenAI

client = OpenAI({given})
response = client.responses.create(model="gpt-5.5", input="Say hi.")
print(response.output_text)
"""
    code = f"import os\n\n{code}" if token else code
    program = Snippet("in your program", "python", code)
    return Client("openai-python", "openai SDK (Python)", (program, *_shell(token)), _RESPONSES)


def _javascript(token: bool) -> Client:
    more = (
        f',\n  defaultHeaders: {{ "x-warmline-token": process.env.{TOKEN} }},\n' if token else " "
    )
    start = "\n  " if token else " "
    code = f"""import OpenAI from "openai";

const client = new OpenAI({{{start}baseURL: "{URL}"{more}}});
const response = await client.responses.create({{ model: "gpt-5.5", input: "Say hi." }});
console.log(response.output_text);
"""
    program = Snippet("in your program", "javascript", code)
    return Client(
        "openai-javascript", "openai SDK (JavaScript)", (program, *_shell(token)), _RESPONSES
    )


def _shell(token: bool) -> tuple[Snippet, ...]:
    """Variables tell the SDKs an address, and no header."""
    text = f"export OPENAI_BASE_URL={URL}\n"
    return () if token else (Snippet("or, without a change to it, in its shell", "shell", text),)


def _agents(token: bool) -> Client:
    first = "import os\n\nimport agents" if token else "import agents"
    made = f'openai.AsyncOpenAI(base_url="{URL}")'
    if token:
        made = f"""openai.AsyncOpenAI(
    base_url="{URL}",
    default_headers={{"x-warmline-token": os.environ["{TOKEN}"]}},
)"""
    code = f"""{first}
import openai

client = {made}
agents.set_default_openai_client(client, use_for_tracing=False)
agent = agents.Agent(name="Assistant", model="gpt-5.5")
print(agents.Runner.run_sync(agent, "Say hi.").final_output)
"""
    return Client(
        "agents",
        "Agents SDK",
        (Snippet("in your program", "python", code),),
        "Runs replay their history, and Warmline sends what is new; previous_response_id need not "
        "be given.",
    )


def _pi(token: bool) -> Client:
    header = f',\n      "headers": {{ "x-warmline-token": "${TOKEN}" }}' if token else ""
    text = f"""{{
  "providers": {{
    "openai": {{
      "baseUrl": "{URL}"{header}
    }}
  }}
}}
"""
    return Client(
        "pi",
        "pi",
        (Snippet("~/.pi/agent/models.json", "json", text),),
        "The provider openai keeps its models and its credential; choose one of them with /model.",
    )


def _opencode(token: bool) -> Client:
    header = f',\n        "headers": {{ "x-warmline-token": "{{env:{TOKEN}}}" }}' if token else ""
    text = f"""{{
  "$schema": "https://opencode.ai/config.json",
  "provider": {{
    "openai": {{
      "options": {{
        "baseURL": "{URL}"{header}
      }}
    }}
  }}
}}
"""
    return Client(
        "opencode",
        "opencode",
        (
            Snippet(
                "opencode.json of the project, or ~/.config/opencode/opencode.json", "json", text
            ),
        ),
        "The provider openai keeps its models and its credential; choose openai/MODEL.",
    )


def _lingtai(token: bool) -> Client:
    header = ',\n      "default_headers": { "x-warmline-token": "THE TOKEN" }' if token else ""
    text = f"""{{
  "manifest": {{
    "llm": {{
      "provider": "openai",
      "model": "gpt-5.5",
      "api_key_env": "OPENAI_API_KEY",
      "base_url": "{URL}",
      "wire_api": "responses"{header}
    }}
  }}
}}
"""
    note = "Without wire_api it would use Chat Completions at an address of your own."
    if token:
        note += " It reads no variables there: put the token of the gateway in place of THE TOKEN."
    return Client(
        "lingtai",
        "LingTai",
        (Snippet("init.json of the agent, beside what is there", "json", text),),
        note,
    )
