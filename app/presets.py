"""Presets: what is known of the speakers of the protocol, as defaults of an upstream's policy.

A preset only stands in for what the table ``[upstreams.NAME]`` does not say. Each number has its
source beside it; docs/settings.md is checked against this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT = "openai"


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    upstream: str
    """Whose endpoint it is for."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the policy that differ from its defaults, with their values."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each of them comes from, in a sentence."""


def _openai_models(first: tuple[int, int]) -> tuple[str, ...]:
    """Patterns of OpenAI's models from GPT-``first`` on, with and without a gateway's prefix."""
    major, minor = first
    versions = [f"{major}.{n}" for n in range(minor, 10)] + [str(n) for n in range(major + 1, 10)]
    return tuple(f"{prefix}gpt-{version}*" for prefix in ("openai/", "") for version in versions)


_ONLY_HTTP = "It has no WebSocket mode."

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("openai", "OpenAI's API; the defaults"),
        Preset("codex", "The backend of ChatGPT that Codex uses; the defaults"),
        Preset("azure", "Azure OpenAI (`/openai/v1`); the defaults"),
        Preset(
            "xai",
            "xAI",
            {"max_connection_age": 22 * 60.0},
            {
                "max_connection_age": "Connections end after 25 minutes (second-hand); "
                "three minutes are left to the last turn.",
            },
        ),
        Preset(
            "vercel",
            "Vercel's AI Gateway",
            {
                "models": _openai_models((5, 4)),
                "one_model": True,
                "max_frame_bytes": 4_000_000,
                "max_connection_age": 11 * 60.0,
            },
            {
                "models": "Only OpenAI's models from GPT-5.4 on have a WebSocket mode "
                "(Vercel's documentation).",
                "one_model": "Another model on a connection is an error and close 1008 "
                "(Vercel's documentation).",
                "max_frame_bytes": "Frames may have 4 MiB (Vercel's documentation).",
                "max_connection_age": "Connections end with close 1001 after about 13 minutes "
                "(Vercel's documentation); two minutes are left to the last turn.",
            },
        ),
        Preset(
            "litellm",
            "LiteLLM's proxy",
            {"one_model": True},
            {
                "one_model": "The first frame's model is that of all that follow "
                "(LiteLLM's source, 1.108).",
            },
        ),
        *(
            Preset(name, upstream, {"continuation": "off"}, {"continuation": source})
            for name, upstream, source in (
                ("openrouter", "OpenRouter", f"{_ONLY_HTTP[:-1]}, as far as is known."),
                ("vllm", "vLLM, SGLang, llama.cpp", f"{_ONLY_HTTP[:-1]} (September 2026)."),
                (
                    "ollama",
                    "Ollama",
                    "It refuses upgrades with 426, so that clients go over HTTP.",
                ),
                ("http", "Any other that has only HTTP", _ONLY_HTTP),
            )
        ),
    )
}
