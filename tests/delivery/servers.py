"""Real servers on loopback that play the other side: Slack (or any webhook) and an SMTP relay."""

import json
import socket
import socketserver
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What the server does with one request once it has read the whole body.

    `lost` closes the connection without a reply; `stall` keeps it open and silent until the server stops.
    """

    status: int = 200
    body: str = "ok"
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False
    stall: bool = False


class HttpServer:
    """Records every request it received in full; answers from a queue, and `ok` when that is empty.

    `accepted` holds the bodies that it took: all but those it refused with a status of 400 or more.
    """

    def __init__(self, port: int = 0) -> None:
        self.answers: deque[Answer] = deque()
        self.accepted: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.on_body: Callable[[], None] = lambda: None
        self._stopped = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = outer.answers.popleft() if outer.answers else Answer()
                outer.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
                if answer.status < 400:
                    outer.accepted.append(json.loads(body))
                outer.on_body()
                if answer.stall:
                    outer._stopped.wait(30)
                if answer.lost or answer.stall:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body.encode())))
                self.end_headers()
                self.wfile.write(answer.body.encode())

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_: object) -> None:
                """Clients that are killed or hang up are what these tests are about."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/very-secret-token"

    @property
    def texts(self) -> list[str]:
        return [body["text"] for body in self.accepted]

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()


class SmtpServer:
    """Speaks just enough SMTP. `replies` overrides the answer to a verb, or to the body's end (`BODY`)."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.hang_up_after_body = False
        self.messages: list[tuple[str, list[str], bytes]] = []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                sender, recipients = "", []
                self._say("220 sink ESMTP")
                while line := self.rfile.readline():
                    text = line.decode().strip()
                    verb = text.partition(" ")[0].upper()
                    reply = outer.replies.get(verb) or next(
                        (r for prefix, r in outer.replies.items() if text.upper().startswith(prefix.upper())), None
                    )
                    if verb == "QUIT":
                        self._say("221 bye")
                        return
                    if reply is not None:
                        self._say(reply)
                    elif verb == "MAIL":
                        sender = text.partition(":")[2].split()[0].strip("<>")
                        self._say("250 ok")
                    elif verb == "RCPT":
                        recipients.append(text.partition(":")[2].split()[0].strip("<>"))
                        self._say("250 ok")
                    elif verb == "DATA":
                        self._say("354 go on")
                        body = b""
                        while (part := self.rfile.readline()) not in (b".\r\n", b""):
                            body += part
                        refusal = outer.replies.get("BODY")
                        if refusal is None:
                            outer.messages.append((sender, recipients, body))
                        if outer.hang_up_after_body:
                            return
                        self._say(refusal or "250 queued")
                    else:
                        self._say("250 ok")

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_: object) -> None:
                """Clients that hang up are what these tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
