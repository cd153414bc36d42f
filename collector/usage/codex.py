"""Codex's session logs, as it keeps them under `~/.codex/sessions`; what counts once is said in codex.sql."""

from typing import Literal

from pydantic import Field

from collector.source import Kind, Source
from collector.store import open_store
from collector.usage.transcripts import Transcripts, TranscriptSettings


class CodexSettings(TranscriptSettings):
    """Codex sessions in a folder or bucket."""

    kind: Literal["codex"]
    provider: str = Field(default="openai", description="who answers, where a session does not say")


def _open(settings: CodexSettings) -> Source:
    return Transcripts(settings, open_store(settings), "usage/codex.sql", settings.provider, by_file=True)


KIND = Kind("codex", CodexSettings, _open)
