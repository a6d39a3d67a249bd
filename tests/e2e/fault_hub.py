# SPDX-License-Identifier: Apache-2.0
"""A server that plays the hub of models, with the faults that a test asks for."""
import contextlib
import hashlib
import http.server
import json
import threading

TOKEN = "hf_secret"


class Hub:
    """`files`: {path: bytes} of the one repository, org/model. Faults are attributes; `requests`
    has (path, headers) of all that came."""

    def __init__(self, files, licence="apache-2.0"):
        self.files, self.licence = files, licence
        self.cut_every = 0        # bytes after which a connection ends
        self.wrong_sums = False   # the listing tells another checksum
        self.damaged = 0          # so many answers have one byte changed
        self.ranges = True        # knows Range
        self.status = {}          # {beginning of a path: a status in place of an answer}
        self.busy = 0             # so many answers are 503
        self.redirect_to = None   # another Hub that has the files
        self.private = False      # needs TOKEN
        self.etag = '"one"'
        self.sends_more = 0       # bytes after the end
        self.shifted = False      # ranges begin elsewhere
        self.has_until = None     # what reaches beyond this byte is 404
        self.together = None      # a threading.Barrier that each range waits at
        self.requests = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def listing(self):
        siblings = []
        for path, data in self.files.items():
            total = hashlib.sha256(b"?" + data if self.wrong_sums else data).hexdigest()
            row = {"rfilename": path, "size": len(data)}
            if path.endswith((".gguf", ".safetensors")):
                row["lfs"] = {"sha256": total, "size": len(data)}
            siblings.append(row)
        return {"id": "org/model", "sha": "0123456789abcdef", "siblings": siblings,
                "cardData": {"license": self.licence}}

    def handler(self):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.close_connection = True
                hub.requests.append((self.path, dict(self.headers)))
                self.answer(self.path.partition("?")[0])

            def refuse(self, status):
                self.send_response(status)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"wrong")

            def answer(self, path):
                for beginning, status in hub.status.items():
                    if path.startswith(beginning):
                        return self.refuse(status)
                if hub.private and self.headers["Authorization"] != f"Bearer {TOKEN}":
                    return self.refuse(401)
                if path == "/api/models/org/model/revision/main":
                    return self.send(json.dumps(hub.listing()).encode(), None)
                for name, data in hub.files.items():
                    if path.endswith("/" + name):
                        return self.file(path, data)
                return self.refuse(404)

            def file(self, path, data):
                if hub.busy > 0:
                    hub.busy -= 1
                    return self.refuse(503)
                if hub.redirect_to is not None:
                    self.send_response(302)
                    self.send_header("Location", hub.redirect_to.url + path)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return None
                if hub.damaged > 0:
                    hub.damaged -= 1
                    data = data[:-1] + bytes([data[-1] ^ 1])
                with contextlib.suppress(ConnectionError):  # the other side had enough
                    self.send(data, self.headers["Range"] if hub.ranges else None,
                              hub.sends_more)
                return None

            def send(self, data, asked, more=0):
                begin, total = 0, len(data)
                same = self.headers["If-Range"] in (None, hub.etag)
                if asked and same:
                    first, _, last = asked.removeprefix("bytes=").partition("-")
                    begin, data = int(first), data[:int(last) + 1 if last else None]
                    if begin >= total:
                        return self.refuse(416)
                    if hub.has_until is not None and len(data) > hub.has_until:
                        return self.refuse(404)
                    if hub.together is not None:
                        hub.together.wait(60)
                    self.send_response(206)
                    told = begin + 1 if hub.shifted else begin
                    self.send_header("Content-Range", f"bytes {told}-{len(data) - 1}/{total}")
                else:
                    self.send_response(200)
                body = data[begin:] + bytes(more)
                self.send_header("ETag", hub.etag)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if hub.cut_every and len(data) > hub.cut_every:
                    body = body[:hub.cut_every]
                self.wfile.write(body)
                return None

        return Handler
