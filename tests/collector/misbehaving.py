"""A server that speaks Prometheus's HTTP API and misbehaves as told, over real HTTP."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.collector.test_openmetrics import T


class Misbehaving(ThreadingHTTPServer):
    """Answers as told; keeps what it was asked."""

    def __init__(self) -> None:
        self.clock = T + 3 * 3600 + 3600
        self.names = ["vllm:prompt_tokens_total"]
        self.samples = [(T + 15 * n, n) for n in range(720)]
        self.refusals: list[tuple[int, str]] = []
        self.most_seconds = 10**9
        self.extra: dict[str, Any] = {}
        self.label_extra: dict[str, Any] = {}
        self.cut = False
        self.delay = 0.0
        self.asked: list[dict[str, str]] = []
        self.sent: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def raw(self, time_: float, window: float) -> dict[str, Any]:
        values = [[at, str(value)] for at, value in self.samples if time_ - window <= at <= time_]
        metric = {"__name__": "vllm:prompt_tokens_total", "pod": "qwen-0"}
        result = [{"metric": metric, "values": values}] if values else []
        return {"status": "success", "data": {"resultType": "matrix", "result": result}, **self.extra}


class _Handler(BaseHTTPRequestHandler):
    server: Misbehaving

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.server.sent.append(dict(self.headers))
        path, _, _query = self.path.partition("?")
        if path.endswith("/values"):
            self._say(200, {"status": "success", "data": self.server.names, **self.server.label_extra})
        else:
            scalar = {"resultType": "scalar", "result": [self.server.clock, str(self.server.clock)]}
            self._say(200, {"status": "success", "data": scalar})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = {name: values[0] for name, values in parse_qs(body).items()}
        self.server.asked.append(given)
        self.server.sent.append(dict(self.headers))
        time.sleep(self.server.delay)
        window = int(re.search(r"\[(\d+)ms\]$", given["query"])[1]) / 1000  # type: ignore[index]
        if self.server.refusals:
            status, error = self.server.refusals.pop(0)
            self._say(status, {"status": "error", "errorType": "x", "error": error})
        elif window > self.server.most_seconds:
            self._say(422, {"status": "error", "error": "query processing would load too many samples into memory"})
        else:
            self._say(200, self.server.raw(float(given["time"]), window))

    def _say(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.server.cut else body)
