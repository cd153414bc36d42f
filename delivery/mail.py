"""Email through SMTP: plain text, with HTML beside it when the message has it."""

import contextlib
import hashlib
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from delivery.message import MAY_REPEAT
from delivery.outcome import Failed, Outcome, Retry, Sent, Uncertain
from delivery.settings import EmailSettings
from delivery.transport import Envelope, Secret, Started, reach

BROKEN = (OSError, smtplib.SMTPException)


@dataclass(frozen=True)
class EmailTransport:
    """One SMTP session per message, with every recipient on it."""

    settings: EmailSettings
    username: Secret | None
    password: Secret | None

    def send(self, envelope: Envelope, started: Started) -> Outcome:
        missing = self._missing()
        if missing:
            return Retry("; ".join(missing))
        content = compose(envelope, self.settings).as_bytes(policy=SMTP)
        try:
            server = self._open()
        except BROKEN as error:
            return _before(error)
        try:
            return self._transfer(server, content, started)
        finally:
            # The outcome is known by now; a server that hangs up early changes nothing about it.
            with contextlib.suppress(*BROKEN):
                server.quit()
            server.close()

    def check(self) -> tuple[str, ...]:
        return (*self._missing(), *reach(self.settings.host, self.settings.port, self.settings.timeout_seconds))

    def secrets(self) -> tuple[str, ...]:
        values = (secret.read() for secret in (self.username, self.password) if secret is not None)
        return tuple(value for value in values if value)

    def _missing(self) -> tuple[str, ...]:
        wanted = (secret for secret in (self.username, self.password) if secret is not None)
        return tuple(secret.missing for secret in wanted if secret.read() is None)

    def _open(self) -> smtplib.SMTP:
        host, port, timeout = self.settings.host, self.settings.port, self.settings.timeout_seconds
        tls = ssl.create_default_context()
        if self.settings.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=timeout, context=tls)
        else:
            server = smtplib.SMTP(host, port, timeout=timeout)
        try:
            if self.settings.security == "starttls":
                server.starttls(context=tls)
            if self.username is not None and self.password is not None:
                server.login(self.username.read() or "", self.password.read() or "")
            server.ehlo_or_helo_if_needed()
        except BaseException:
            server.close()
            raise
        return server

    def _transfer(self, server: smtplib.SMTP, content: bytes, started: Started) -> Outcome:
        """From MAIL to the answer after the body. Only the body's end can make the server accept the message."""
        try:
            code, text = server.mail(self.settings.sender)
            if code != 250:
                return _refused(code, text, "MAIL FROM")
            refused = []
            for recipient in self.settings.recipients:
                code, text = server.rcpt(recipient)
                if 400 <= code < 500:
                    return _refused(code, text, recipient)
                if code not in (250, 251):
                    refused.append(f"{recipient} refused: {_said(code, text)}")
            if len(refused) == len(self.settings.recipients):
                return Failed("; ".join(refused), "correct the channel's `recipients`")
        except BROKEN as error:
            return _before(error)
        started()
        try:
            code, text = server.data(content)
        except smtplib.SMTPDataError as error:  # the server refused before the body went out
            return _refused(error.smtp_code, error.smtp_error, "DATA")
        except BROKEN as error:
            return Uncertain(f"the message went out and no answer came back ({type(error).__name__}: {error})")
        if code != 250:
            return _refused(code, text, "the message")
        return Sent("; ".join(refused) or None)


def compose(envelope: Envelope, settings: EmailSettings) -> EmailMessage:
    """The email; its Message-ID follows from channel and key, so mail systems can recognise a repetition."""
    mark = f"{MAY_REPEAT} " if envelope.may_repeat else ""
    identity = hashlib.sha256(f"{envelope.channel}\n{envelope.key}".encode()).hexdigest()[:32]
    email = EmailMessage()
    email["Subject"] = " ".join((mark + envelope.message.subject).split())
    email["From"] = settings.sender
    email["To"] = ", ".join(settings.recipients)
    email["Date"] = format_datetime(envelope.created_at)
    email["Message-ID"] = f"<{identity}@{settings.sender.rpartition('@')[2]}>"
    email["Auto-Submitted"] = "auto-generated"
    email.set_content(mark + envelope.message.text)
    if envelope.message.html is not None:
        note = f"<p>{MAY_REPEAT}</p>" if envelope.may_repeat else ""
        email.add_alternative(note + envelope.message.html, subtype="html")
    return email


def _before(error: Exception) -> Outcome:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        said = _said(error.smtp_code, error.smtp_error)
        return Retry(f"the server refuses the login ({said}): check the channel's username_env and password_env")
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return Retry(f"{error}: check the channel's `security` and `port`")
    return Retry(f"no SMTP session ({type(error).__name__}: {error})")


def _refused(code: int, text: bytes | str, what: str) -> Outcome:
    if 400 <= code < 500:
        return Retry(f"{what}: {_said(code, text)}")
    return Failed(f"{what}: {_said(code, text)}", "check the channel's `sender` and `recipients` with the mail server")


def _said(code: int, text: bytes | str) -> str:
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(said.split())}"[:300]
