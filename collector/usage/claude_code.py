"""Claude Code's session logs, as it keeps them under `~/.claude/projects`; claude_code.sql says what counts once."""

from typing import Literal

from pydantic import Field

from collector.source import Kind, Source
from collector.store import open_store
from collector.usage.transcripts import Transcripts, TranscriptSettings


class ClaudeCodeSettings(TranscriptSettings):
    """Claude Code sessions in a folder or bucket."""

    kind: Literal["claude_code"]
    provider: str = Field(
        default="anthropic", description="who answers; ids of Bedrock and Vertex AI say so themselves"
    )


def _open(settings: ClaudeCodeSettings) -> Source:
    return Transcripts(settings, open_store(settings), "usage/claude_code.sql", settings.provider)


KIND = Kind("claude_code", ClaudeCodeSettings, _open)
