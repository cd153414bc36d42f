"""A channel for those who have none: messages become files in a folder, as they would have been sent."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from delivery.channels import Channel
from delivery.outcome import Outcome, Sent
from delivery.transport import Envelope, Started


@dataclass(frozen=True)
class FolderTransport:
    """Writes each message under its outbox key: the text, and Slack's blocks beside it."""

    folder: Path

    def send(self, envelope: Envelope, started: Started) -> Outcome:
        """Write the files; the same message again writes the same files."""
        started()
        self.folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "-", envelope.key).strip("-")[:120]
        message = envelope.message
        (self.folder / f"{name}.txt").write_text(f"{message.subject}\n\n{message.text}\n")
        if message.blocks:
            blocks = {"text": message.subject, "blocks": list(message.blocks)}
            (self.folder / f"{name}.slack.json").write_text(json.dumps(blocks, indent=1, ensure_ascii=False))
        if message.html:
            (self.folder / f"{name}.html").write_text(message.html)
        return Sent()

    def check(self) -> tuple[str, ...]:
        """Nothing stops it."""
        return ()

    def secrets(self) -> tuple[str, ...]:
        """It has none."""
        return ()


def folder_channel(folder: Path) -> dict[str, Channel]:
    """One channel, `folder`."""
    return {"folder": Channel("folder", FolderTransport(folder))}
